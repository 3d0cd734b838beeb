// SPDX-License-Identifier: Apache-2.0

// Runs before Main, in the app's process, because a rule says so. The runtime
// wants this name, outside of any namespace.

using System;

internal class StartupHook
{
    public static void Initialize() =>
        AppContext.SetData("demo.hook", $"ran before Main, with SHOP_REGION={Environment.GetEnvironmentVariable("SHOP_REGION")}");
}

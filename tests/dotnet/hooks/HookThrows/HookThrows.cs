// SPDX-License-Identifier: Apache-2.0
//
// A startup hook that throws. The runtime accepts the command that queues it and dies of it at start.

using System;

internal static class StartupHook
{
    public static void Initialize()
    {
        throw new InvalidOperationException("HookThrows throws, as it is meant to");
    }
}

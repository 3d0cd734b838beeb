// SPDX-License-Identifier: Apache-2.0

// An app that knows nothing of diagport: it says what it finds when Main begins.

using System;

Console.WriteLine($"  Shop.Payments on .NET {Environment.Version}, pid {Environment.ProcessId}");
Console.WriteLine($"    SHOP_REGION   = {Environment.GetEnvironmentVariable("SHOP_REGION") ?? "(not set)"}");
Console.WriteLine($"    SHOP_DEBUG    = {Environment.GetEnvironmentVariable("SHOP_DEBUG") ?? "(not set)"}");
Console.WriteLine($"    startup hook  = {AppContext.GetData("demo.hook") ?? "(none ran)"}");

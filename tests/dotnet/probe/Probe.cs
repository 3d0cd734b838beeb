// SPDX-License-Identifier: Apache-2.0
//
// The program that the end-to-end tests start. It prints one line, a JSON object that tells what reached it:
// variables as managed code, native code and children of either see them, startup hooks that ran, and the proof that
// the test profilers leave. README.md describes the object. Nothing here may need reflection: the same source is
// compiled ahead of time.
//
//   --names A,B,C   the variables to look up
//   --children      look them up in children too
//   --wait          stay alive until standard input ends
//   --exit N        the exit status, 0 without it
//
// Other arguments are allowed, for tests that tell programs apart by them, and change nothing.

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;
using System.Text.Json;

internal static unsafe partial class Probe
{
    private const string EnvironmentPrinter = "/usr/bin/env";

    private static int Main(string[] args)
    {
        string[] names = [];
        bool children = false;
        bool wait = false;
        int status = 0;

        for (int i = 0; i < args.Length; i++)
        {
            switch (args[i])
            {
                case "--names" when i + 1 < args.Length:
                    names = args[++i].Split(',', StringSplitOptions.RemoveEmptyEntries);
                    break;
                case "--exit" when i + 1 < args.Length:
                    status = int.Parse(args[++i], CultureInfo.InvariantCulture);
                    break;
                case "--children":
                    children = true;
                    break;
                case "--wait":
                    wait = true;
                    break;
            }
        }

        Print(Report(args, names, children));
        if (wait)
        {
            WaitForEndOfInput();
        }
        return status;
    }

    private static byte[] Report(string[] args, string[] names, bool children)
    {
        using var buffer = new MemoryStream();
        using (var json = new Utf8JsonWriter(buffer))
        {
            json.WriteStartObject();
            json.WriteString("version", Environment.Version.ToString());
            WriteVariables(json, "managed", names, Environment.GetEnvironmentVariable);
            WriteVariables(json, "native", names, NativeVariable);
            WriteVariables(json, "child", names, children ? Lookup(ManagedChild()) : null);
            WriteVariables(json, "native_child", names, children ? Lookup(NativeChild()) : null);
            WriteList(json, "hooks", HooksThatRan());
            json.WriteString("profiler", NativeVariable("DIAGPORT_TEST_PROFILER"));
            json.WriteString("profiler_notify", NativeVariable("DIAGPORT_TEST_PROFILER_NOTIFY"));
            WriteList(json, "args", args);
            json.WriteNumber("pid", Environment.ProcessId);
            json.WriteEndObject();
        }
        buffer.WriteByte((byte)'\n');
        return buffer.ToArray();
    }

    // A place that was not looked at is null; a variable that is not there is null within it.
    private static void WriteVariables(Utf8JsonWriter json, string place, string[] names,
                                       Func<string, string?>? lookup)
    {
        if (lookup is null)
        {
            json.WriteNull(place);
            return;
        }
        json.WriteStartObject(place);
        foreach (string name in names)
        {
            json.WriteString(name, lookup(name));
        }
        json.WriteEndObject();
    }

    private static void WriteList(Utf8JsonWriter json, string property, string[] values)
    {
        json.WriteStartArray(property);
        foreach (string value in values)
        {
            json.WriteStringValue(value);
        }
        json.WriteEndArray();
    }

    private static string[] HooksThatRan()
    {
        return AppContext.GetData("DIAGPORT_TEST_HOOKS") is string list ? list.Split(',') : [];
    }

    private static Func<string, string?> Lookup(Dictionary<string, string> environment)
    {
        return name => environment.GetValueOrDefault(name);
    }

    // The child gets the environment that managed code sees.
    private static Dictionary<string, string> ManagedChild()
    {
        var start = new ProcessStartInfo(EnvironmentPrinter)
        {
            ArgumentList = { "-0" },
            RedirectStandardOutput = true,
            StandardOutputEncoding = Encoding.UTF8,
        };
        using Process child = Process.Start(start) ?? throw new IOException("no child");
        string output = child.StandardOutput.ReadToEnd();

        child.WaitForExit();
        return ParseEnvironment(output);
    }

    // The child gets the environment of the process itself, as any library in it would hand it on.
    private static Dictionary<string, string> NativeChild()
    {
        using var output = new MemoryStream();
        byte[] block = new byte[4096];
        nint stream = OpenPipe(EnvironmentPrinter + " -0", "r");

        if (stream == 0)
        {
            throw new IOException("popen failed");
        }
        fixed (byte* start = block)
        {
            nuint count;

            while ((count = Read(start, 1, (nuint)block.Length, stream)) > 0)
            {
                output.Write(block, 0, (int)count);
            }
        }
        _ = ClosePipe(stream);
        return ParseEnvironment(Encoding.UTF8.GetString(output.ToArray()));
    }

    private static Dictionary<string, string> ParseEnvironment(string output)
    {
        var environment = new Dictionary<string, string>();

        foreach (string entry in output.Split('\0', StringSplitOptions.RemoveEmptyEntries))
        {
            int equals = entry.IndexOf('=');

            if (equals > 0)
            {
                environment[entry[..equals]] = entry[(equals + 1)..];
            }
        }
        return environment;
    }

    // One write, straight to the descriptor: a reader has the whole line before this program waits or exits.
    private static void Print(byte[] line)
    {
        using Stream output = Console.OpenStandardOutput();

        output.Write(line);
        output.Flush();
    }

    private static void WaitForEndOfInput()
    {
        using Stream input = Console.OpenStandardInput();
        byte[] ignored = new byte[256];

        while (input.Read(ignored, 0, ignored.Length) > 0)
        {
        }
    }

    private static string? NativeVariable(string name)
    {
        return Marshal.PtrToStringUTF8((nint)GetVariable(name));
    }

    // The result belongs to the environment and must not be freed, hence no string.
    [LibraryImport("libc", EntryPoint = "getenv", StringMarshalling = StringMarshalling.Utf8)]
    private static partial byte* GetVariable(string name);

    [LibraryImport("libc", EntryPoint = "popen", StringMarshalling = StringMarshalling.Utf8)]
    private static partial nint OpenPipe(string command, string mode);

    [LibraryImport("libc", EntryPoint = "fread")]
    private static partial nuint Read(byte* block, nuint size, nuint count, nint stream);

    [LibraryImport("libc", EntryPoint = "pclose")]
    private static partial int ClosePipe(nint stream);
}

# SPDX-License-Identifier: Apache-2.0
"""What build-rig built, for the tests that start it.

    rig = Rig("/var/tmp/rig")
    for version in rig.versions:
        subprocess.run(rig.command(version, "--names", "PATH"))

README.md says what the programs print.
"""

import json
import pathlib


class Rig:
    """The folder that build-rig was given. All paths are absolute texts, fit for argument lists and messages."""

    def __init__(self, path):
        """Reads the manifest; a folder without one was never built to the end."""
        root = pathlib.Path(path).resolve()
        manifest = json.loads((root / "rig.json").read_text(encoding="utf-8"))

        def absolute(relative):
            return str(root / relative)

        def programs(kind):
            return [(program["label"], absolute(program["path"])) for program in manifest[kind]]

        #: Versions of CoreCLR, oldest first, as text: "8.0.34" and so on.
        self.versions = manifest["versions"]
        #: The host of the rig's own installation, which has exactly these versions.
        self.dotnet = absolute(manifest["dotnet"])
        #: The probe as an assembly, for any of the versions.
        self.probe = absolute(manifest["probe"])
        #: The probe compiled ahead of time, as (label, path): a runtime without profilers and startup hooks. Labels
        #: end in the version of the runtime inside, "nativeaot-10.0.12".
        self.aot = programs("aot")
        #: The probe as one self-contained file, as (label, path): CoreCLR linked into the program itself.
        self.single_file = programs("single_file")
        #: Startup hooks that record that they ran. The probe lists them as "HookA" and "HookB".
        self.hook_a = absolute(manifest["hook_a"])
        self.hook_b = absolute(manifest["hook_b"])
        #: A startup hook that throws, of which the program dies by SIGABRT before its Main.
        self.hook_throws = absolute(manifest["hook_throws"])
        #: A profiler that leaves proof of its Initialize, and the class identifier it insists on, in braces.
        self.profiler = absolute(manifest["profiler"])
        self.profiler_clsid = manifest["profiler_clsid"]
        #: The same as a notification-only profiler, which a runtime loads beside a main one.
        self.profiler_notify = absolute(manifest["profiler_notify"])
        self.profiler_notify_clsid = manifest["profiler_notify_clsid"]
        #: The folder of Microsoft.CodeCoverage's profiler; None where its package could not be had.
        self.coverage = absolute(manifest["coverage"]) if manifest.get("coverage") else None

    def command(self, version, *arguments):
        """The argument list that runs the probe on exactly this version of CoreCLR."""
        if version not in self.versions:
            raise ValueError(f"the rig has no runtime {version}, only {', '.join(self.versions)}")
        return [self.dotnet, "exec", "--fx-version", version, self.probe, *arguments]

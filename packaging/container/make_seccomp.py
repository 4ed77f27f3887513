#!/usr/bin/env python3
"""A seccomp profile for containers that run programs under Spillway: make_seccomp.py DEFAULT OUTPUT.

DEFAULT is the profile that podman and Docker use when none is named (Debian: golang-github-containers-common). Added are the
system calls that Spillway works with and that it forbids. The result is in the plain form of the OCI specification, which
containerd, and so Kubernetes, reads as well: what depends on capabilities, processors and kernels is decided here, for
x86-64 and the capabilities that containers have unless they are given more.
"""
import json
import sys

# docs/guide/containers.md says what each is for. process_madvise: of the process itself; the kernel guards the others.
ADDED = ("userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "process_madvise", "pidfd_open")
ARCHITECTURES = ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"]
ARCHITECTURE_NAMES = {"amd64", "x86", "x32"}
CAPABILITIES = {f"CAP_{name}" for name in (
    "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL "
    "AUDIT_WRITE").split()}


def applies(rule):
    """Whether a rule of the default is in force here. Every kernel of ours is newer than those that rules ask for."""
    includes, excludes = rule.get("includes") or {}, rule.get("excludes") or {}
    if not set(includes.get("caps", ())) <= CAPABILITIES or set(excludes.get("caps", ())) & CAPABILITIES:
        return False
    if includes.get("arches") and not ARCHITECTURE_NAMES & set(includes["arches"]):
        return False
    return not ARCHITECTURE_NAMES & set(excludes.get("arches") or ())


def profile_from(default):
    rules = []
    for rule in default["syscalls"]:
        names = [name for name in rule["names"] if name not in ADDED]
        if not names or not applies(rule):
            continue
        kept = {"names": names, "action": rule["action"]}
        kept.update({key: rule[key] for key in ("args", "errnoRet") if rule.get(key)})
        rules.append(kept)
    rules.append({"names": list(ADDED), "action": "SCMP_ACT_ALLOW"})
    profile = {"defaultAction": default["defaultAction"], "architectures": ARCHITECTURES, "syscalls": rules}
    if default.get("defaultErrnoRet"):
        profile["defaultErrnoRet"] = default["defaultErrnoRet"]
    return profile


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: make_seccomp.py DEFAULT OUTPUT")
    with open(sys.argv[1]) as file:
        profile = profile_from(json.load(file))
    with open(sys.argv[2], "w") as file:
        json.dump(profile, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()

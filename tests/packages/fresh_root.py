"""A Debian 12 with nothing in it but apt and pip, to install packages in and to run programs in without a network."""
import os
import pathlib
import shutil
import subprocess
import time

SOURCES = pathlib.Path("/etc/apt/sources.list.d/debian.sources")  # where this machine gets Debian's packages, if it says so
BASE_AGE_MAX_S = 7 * 24 * 3600  # then its own packages are made new
INCLUDED = "ca-certificates,python3-pip,python3-venv"
# In namespaces of its own, which end with it: the first argument is the root, the rest a command there.
ENTER = ('mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --rbind /sys "$1/sys" && '
         'if [ "$NETWORK" = no ]; then ip link set lo up 2>/dev/null; fi; exec chroot "$@"')
PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")


def why_not():
    """Why there can be no such root here, or ""."""
    if os.geteuid() != 0:
        return "a fresh root takes root's rights (chroot, mounts)"
    for program in ("mmdebstrap", "unshare", "chroot"):
        if shutil.which(program) is None:
            return f"there is no {program}; apt-get install {program}"
    if subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        return "no namespaces of mounts, networks and processes can be made here"
    return ""


def make_base(file):
    """An archive of the root as it is before anything is installed. Seconds that it took; 0: it was there. OSError: no network."""
    if file.exists() and time.time() - file.stat().st_mtime < BASE_AGE_MAX_S:
        return 0
    file.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    made = file.with_suffix(".new.tar")
    command = ["mmdebstrap", "--variant=minbase", f"--include={INCLUDED}", "bookworm", made]
    if SOURCES.exists() and "bookworm" in SOURCES.read_text():
        command.append(SOURCES)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        made.unlink(missing_ok=True)
        raise OSError(f"mmdebstrap made no Debian 12 (is the network there?): {done.stderr.strip().splitlines()[-1]}")
    made.rename(file)
    return time.monotonic() - began


class Root:
    def __init__(self, base, folder):
        self.bound = []
        self.folder = folder
        self.remove()
        folder.mkdir(parents=True)
        subprocess.run(["tar", "-C", folder, "--numeric-owner", "--exclude=./dev/*", "-xf", base], check=True)
        # Names, and the certificates of whoever stands between this machine and the network.
        for file in ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"):
            if pathlib.Path("/", file).exists():
                shutil.copyfile(pathlib.Path("/", file), folder / file)

    def bind(self, folder, name):
        """What is called from now on has this machine's `folder` under `name`, too."""
        (self.folder / name.lstrip("/")).mkdir(parents=True)
        self.bound.append(f'mount --bind "{folder}" "{self.folder}{name}" && ')

    def _start_arguments(self, command, network, more):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "TERM": "dumb",
                       "DEBIAN_FRONTEND": "noninteractive", "NETWORK": "yes" if network else "no",
                       **{name: os.environ[name] for name in PASSED_ON if name in os.environ}, **more}
        spaces = ["--mount", "--pid", "--fork", "--kill-child"] + ([] if network else ["--net"])
        words = ["unshare", *spaces, "sh", "-c", "".join(self.bound) + ENTER, "sh", self.folder, *map(str, command)]
        return {"args": words, "env": environment, "text": True, "errors": "replace", "stdin": subprocess.DEVNULL}

    def call(self, *command, network=False, **more):
        """What `command` did in the root, as nobody's child: text output, a clean environment, its own processes."""
        return subprocess.run(**self._start_arguments(command, network, more), capture_output=True, timeout=600)

    def start(self, *command, **more):
        """The same, with the network and its output in a pipe, as a process that may take long. It ends with this one."""
        return subprocess.Popen(**self._start_arguments(command, True, more), stdout=subprocess.PIPE)

    def do(self, *command, **more):
        """Its output. AssertionError, with what it said, if it failed."""
        done = self.call(*command, **more)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def shell(self, script, **more):
        return self.do("sh", "-ec", script, **more)

    def write(self, name, text):
        file = self.folder / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return name

    def remove(self):
        """Nothing of it is left. What was killed outright in it may have left a file that the machine still swaps to."""
        for line in pathlib.Path("/proc/swaps").read_text().splitlines()[1:]:
            file = line.split(" ", 1)[0].split("\t", 1)[0]
            if pathlib.Path(file).is_relative_to(self.folder):
                subprocess.run(["swapoff", file], check=True)
        if self.folder.exists():
            shutil.rmtree(self.folder)

"""The parts of a build that come from elsewhere, as an SPDX 2.3 document: what the compiler read and the linker took in.

Looked up, not listed: the build tree says which files of the system it was made of (ninja's log of dependencies, and the
linker's command lines), dpkg says whose they are. Only licenses are written down here, since packages tell them in prose.
"""
import hashlib
import json
import pathlib
import re
import subprocess
import time

# Of what is compiled or linked in. A package that is not named here has NOASSERTION, which release.py points out.
LICENSES = {
    "libstdc++-12-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libgcc-12-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "liburing-dev": "MIT OR LGPL-2.1-only",
    "libfmt-dev": "MIT",
    "libcli11-dev": "BSD-3-Clause",
    "nlohmann-json3-dev": "MIT",
    "libxxhash-dev": "BSD-2-Clause",
    "libjs-chart.js": "MIT",
    "libevent-dev": "BSD-3-Clause",
    "libdw-dev": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libelf-dev": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libbz2-dev": "bzip2-1.0.6",
    "libncurses-dev": "X11-distribute-modifications-variant",
    "zlib1g-dev": "Zlib",
    "libzstd-dev": "BSD-3-Clause OR GPL-2.0-only",
    "liblzma-dev": "LicenseRef-public-domain",
    "libnbd-dev": "LGPL-2.1-or-later",
    "liblz4-dev": "BSD-2-Clause",
    "librbd-dev": "LGPL-2.1-only OR LGPL-3.0-only",
    "librados-dev": "LGPL-2.1-only OR LGPL-3.0-only",
    "llvm-19-dev": "Apache-2.0 WITH LLVM-exception",
    "libclang-common-19-dev": "Apache-2.0 WITH LLVM-exception",
}
# What SPDX has no name for.
OWN_LICENSES = [{"licenseId": "LicenseRef-public-domain", "name": "Public domain",
                 "extractedText": "liblzma is in the public domain (XZ Utils before 5.6)."}]
# Interfaces of what every system has and nothing is taken in of.
INTERFACES = re.compile(r"libc6-dev|linux-libc-dev|libc\+\+.*")
# By their headers alone: libnbd.so is loaded when a store is an NBD server, librbd.so when it is an image of a Ceph cluster,
# liblz4.so by --compress. LLVM's library is clang's own.
LOADED = ("libnbd-dev", "liblz4-dev", "librbd-dev", "librados-dev", "llvm-19-dev")


def _said(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


def files_of_system(tree):
    """Absolute paths of the headers that were read, the archives that were linked, and the scripts that went into pages."""
    headers = set(re.findall(r"^\s+(/usr/\S+)$", _said("ninja", "-C", tree, "-t", "deps"), re.MULTILINE))
    commands = _said("ninja", "-C", tree, "-t", "commands")
    archives = set(re.findall(r"(?<=[\s=])/usr/\S+\.(?:a|js)\b", commands))
    compiler = re.search(r"(\S*clang\+\+\S*|\S*g\+\+\S*) ", commands)[1]
    for name in ("libstdc++.a", "libgcc.a"):  # -static-libstdc++, and what a compiler adds by itself
        archives.add(_said(compiler, f"-print-file-name={name}").strip())
    return headers | archives


def packages_of(files):
    """{package: (version, source, homepage)} of Debian's packages that have the files."""
    real = sorted({str(pathlib.Path(file).resolve()) for file in files} | set(files))
    done = subprocess.run(["dpkg", "-S", *real], capture_output=True, text=True)
    names = {name.split(":")[0] for line in done.stdout.splitlines() for name in line.partition(": ")[0].split(", ")}
    found = {}
    for name in sorted(names):
        if not INTERFACES.fullmatch(name):
            found[name] = tuple(_said("dpkg-query", "-W", "-f", "${Version}\t${source:Package}\t${Homepage}", name)
                                .splitlines()[0].split("\t"))
    return found


def _sum(kind, file):
    return {"algorithm": kind, "checksumValue": hashlib.new(kind.lower(), file.read_bytes()).hexdigest()}


def document(version, tree, artifacts, when):
    """The document, for a build `tree` and the files of a release; `when`: seconds since 1970."""
    parts = packages_of(files_of_system(tree))
    packages = [{"SPDXID": "SPDXRef-spillway", "name": "spillway", "versionInfo": version, "licenseDeclared": "Apache-2.0",
                 "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION",
                 "filesAnalyzed": False, "primaryPackagePurpose": "APPLICATION"}]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-spillway")]
    for name, (part_version, source, homepage) in parts.items():
        identity = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
        license_of = LICENSES.get(name, "NOASSERTION")
        packages.append({
            "SPDXID": identity, "name": name, "versionInfo": part_version, "sourceInfo": f"Debian source package {source}",
            "licenseDeclared": license_of, "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "primaryPackagePurpose": "LIBRARY",
            **({"homepage": homepage} if homepage else {}),
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{name.replace('+', '%2B')}@{part_version.replace('+', '%2B').replace(':', '%3A')}?arch=amd64"}]})
        relations.append(("SPDXRef-spillway", "DEPENDS_ON" if name in LOADED else "STATIC_LINK", identity))
    files = []
    for number, file in enumerate(artifacts):
        files.append({"SPDXID": f"SPDXRef-file-{number}", "fileName": f"./{file.name}", "checksums": [_sum("SHA1", file), _sum("SHA256", file)],
                      "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"})
        relations.append(("SPDXRef-spillway", "GENERATES", f"SPDXRef-file-{number}"))
    digest = hashlib.sha256(json.dumps([packages, files]).encode()).hexdigest()[:16]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"spillway-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/spillway-{version}-{digest}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)),
                         "creators": ["Tool: packaging/sbom.py of Spillway"]},
        "packages": packages, "files": files, "hasExtractedLicensingInfos": OWN_LICENSES,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations]}

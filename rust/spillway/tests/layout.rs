//! The structures and constants of `sys` are those of the header. Needs `cc`, and the header in SPILLWAY_DIR/include or in
//! the project's own include folder.
use std::mem::{align_of, size_of};
use std::path::Path;
use std::process::Command;

use spillway::sys::*;

/// What C says of `expressions`.
fn told_by_c(expressions: &[&str]) -> Vec<u64> {
    let folder = std::env::temp_dir().join(format!("spillway-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let prints: String =
        expressions.iter().map(|e| format!("printf(\"%llu\\n\", (unsigned long long)({e}));")).collect();
    let text = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include <spillway/spillway.h>\nint main(void) {{{prints}}}\n"
    );
    std::fs::write(folder.join("layout.c"), text).unwrap();
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut cc = Command::new("cc");
    if let Some(prefix) = std::env::var_os("SPILLWAY_DIR") {
        cc.arg("-I").arg(Path::new(&prefix).join("include"));
    }
    cc.arg("-I").arg(project).arg("-o").arg(folder.join("layout")).arg(folder.join("layout.c"));
    assert!(cc.status().expect("cc is there, as rustc needs it to link").success());
    let said = Command::new(folder.join("layout")).output().unwrap().stdout;
    std::fs::remove_dir_all(&folder).unwrap();
    String::from_utf8(said).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

fn offset_of<S, F>(whole: &S, part: &F) -> u64 {
    (part as *const F as u64) - (whole as *const S as u64)
}

#[test]
fn structures_and_constants_are_those_of_the_header() {
    let statistics = spw_statistics::default();
    let pinned = spw_pinned { data: std::ptr::null_mut(), bytes: 0, reserved: 0 };
    let range = spw_range { address: std::ptr::null(), bytes: 0 };
    let store = spw_store { size: 0, context: std::ptr::null_mut(), bytes: 0, read: None, write: None, sync: None };
    let table = [
        ("sizeof(struct spw_statistics)", size_of::<spw_statistics>() as u64),
        ("offsetof(struct spw_statistics, pinned_bytes)", offset_of(&statistics, &statistics.pinned_bytes)),
        ("offsetof(struct spw_statistics, zero_fills)", offset_of(&statistics, &statistics.zero_fills)),
        ("offsetof(struct spw_statistics, written_bytes)", offset_of(&statistics, &statistics.written_bytes)),
        ("offsetof(struct spw_statistics, waited_ns)", offset_of(&statistics, &statistics.waited_ns)),
        ("sizeof(struct spw_pinned)", size_of::<spw_pinned>() as u64),
        ("offsetof(struct spw_pinned, reserved)", offset_of(&pinned, &pinned.reserved)),
        ("sizeof(struct spw_range)", size_of::<spw_range>() as u64),
        ("offsetof(struct spw_range, bytes)", offset_of(&range, &range.bytes)),
        ("sizeof(struct spw_store)", size_of::<spw_store>() as u64),
        ("_Alignof(struct spw_store)", align_of::<spw_store>() as u64),
        ("offsetof(struct spw_store, bytes)", offset_of(&store, &store.bytes)),
        ("offsetof(struct spw_store, write)", offset_of(&store, &store.write)),
        ("offsetof(struct spw_store, sync)", offset_of(&store, &store.sync)),
        ("SPW_MAP_SHARED", SPW_MAP_SHARED.into()),
        ("SPW_MAP_PRIVATE", SPW_MAP_PRIVATE.into()),
        ("SPW_MAP_READ_ONLY", SPW_MAP_READ_ONLY.into()),
        ("SPW_MAP_CREATE", SPW_MAP_CREATE.into()),
        ("SPW_READ", SPW_READ.into()),
        ("SPW_WRITE", SPW_WRITE.into()),
        ("SPW_OVERWRITE", SPW_OVERWRITE.into()),
        ("SPW_NORMAL", SPW_NORMAL.into()),
        ("SPW_SEQUENTIAL", SPW_SEQUENTIAL.into()),
        ("SPW_RANDOM", SPW_RANDOM.into()),
        ("SPW_WILLNEED", SPW_WILLNEED.into()),
        ("SPW_DONTNEED", SPW_DONTNEED.into()),
        ("SPW_PINS_PER_THREAD", SPW_PINS_PER_THREAD as u64),
        ("sizeof(enum spw_access)", size_of::<std::os::raw::c_uint>() as u64),
    ];
    let told = told_by_c(&table.map(|(expression, _)| expression));
    assert_eq!(told.len(), table.len());
    for ((expression, ours), theirs) in table.iter().zip(told) {
        assert_eq!(*ours, theirs, "{expression}");
    }
}

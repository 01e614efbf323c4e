//! How the library is linked.

fn main() {
    // libfabric may close it at exit while other code still has pointers to its tables.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}

//! How the library is linked.

fn main() {
    // Programs and UCX's own libraries ask for it by this name.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libucp.so.0");
    // MPI libraries may close it at exit while other code still has pointers into it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}

//! The engine, behind a driver: see `ayre_conformance::driver`.
fn main() {
    ayre_conformance::driver::serve();
}

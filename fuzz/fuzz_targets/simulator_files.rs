//! Any text as a topology, a scenario, a script, or kept results. A topology that was read can be
//! written and read again, and its routes followed.
#![no_main]
use ayre_sim::report::Results;
use ayre_sim::routing::{Plan, Policy, Survey};
use ayre_sim::scenario::{Scenario, Script};
use ayre_sim::topology::Named;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(named) = Named::read("fuzz", text) {
        let written = named.to_text();
        let text = Named::from_text("fuzz", &written).map(|again| again.to_text());
        assert_eq!(text.as_ref(), Ok(&written));
        let dot = Named::from_dot("fuzz", &named.to_dot()).map(|again| again.to_text());
        assert_eq!(dot.as_ref(), Ok(&written));
        if named.topology.ports.len() < 64 {
            let plan = Plan::new(&named.topology, Policy::ShortestPath, 2);
            let _ = plan.map(|plan| Survey::new(&plan).is_ok());
        }
    }
    let _ = Scenario::from_toml(text);
    let _ = Script::read("fuzz", text).map(|script| script.check(8));
    let _ = Results::from_json(text).map(|results| results.to_csv());
});

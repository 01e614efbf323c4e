//! UCX, by its own `ucx_perftest`.

use std::process::Command;

use anyhow::{Context, Result};

use super::child::{free_port, line_of, run_pair};
use super::{Peer, Reading, SIZES, STREAMED_FROM};

const PERFTEST: &str = "ucx_perftest";

pub(super) const PEER: Peer = Peer {
    name: "UCX",
    programs: &[PERFTEST],
    told: "ucx_perftest, tag_lat (the median) and tag_bw, over shared memory",
    version: || line_of("ucx_info", &["-v"], "# ").map(|line| line[2..].to_owned()),
    round,
};

fn round(cores: &[usize]) -> Result<Vec<Reading>> {
    let mut readings = vec![];
    for size in SIZES {
        readings.push(measure(cores, "tag_lat", size)?);
        if size >= STREAMED_FROM {
            readings.push(measure(cores, "tag_bw", size)?);
        }
    }
    Ok(readings)
}

fn measure(cores: &[usize], test: &str, size: usize) -> Result<Reading> {
    let port = free_port()?;
    let perftest = || {
        let mut command = Command::new(PERFTEST);
        if std::env::var_os("UCX_TLS").is_none() {
            command.env("UCX_TLS", "posix,sysv,cma,self");
        }
        command.args(["-p", &port.to_string()]);
        command
    };
    let often = ((8 << 20) / size).clamp(50, 5000);
    let (often, before, size_text) =
        (often.to_string(), (often / 10).to_string(), size.to_string());
    let mut client = perftest();
    client.args(["127.0.0.1", "-t", test, "-s", &size_text, "-n", &often, "-w", &before]);
    let said = run_pair(&mut perftest(), client.args(["-f", "-v"]), port, cores)?;
    parse(&said, test, size).with_context(|| format!("ucx_perftest has written: {said}"))
}

/// Numbers below their names, with commas between them.
fn parse(said: &str, test: &str, size: usize) -> Option<Reading> {
    let mut lines = said.lines().skip_while(|line| !line.starts_with("iterations,"));
    let (heads, numbers) = (lines.next()?, lines.next()?);
    let number = |name: &str| -> Option<f64> {
        let at = heads.split(',').position(|head| head == name)?;
        numbers.split(',').nth(at)?.trim().parse().ok()
    };
    // Microseconds, and 2^20 bytes a second.
    match test {
        "tag_lat" => {
            let value = 1e3 * number("50.0_percentile_lat")?;
            Some(Reading { is_latency: true, size, value })
        }
        _ => {
            let value = f64::from(1 << 20) * number("overall_bw")? / 1e9;
            Some(Reading { is_latency: false, size, value })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "some warning\n\
        iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n \
        200,8.384,1309.115,3657.013,47.74,1000.0,764,273\n";

    #[test]
    fn the_output_of_the_peer_program_is_parsed() {
        let latency = parse(SAID, "tag_lat", 64).unwrap();
        assert_eq!(latency, Reading { is_latency: true, size: 64, value: 8384.0 });
        let bandwidth = parse(SAID, "tag_bw", 64).unwrap();
        assert!(!bandwidth.is_latency && (bandwidth.value - 1.048_576).abs() < 1e-9);
        assert_eq!(parse("iterations,\n", "tag_bw", 64), None);
    }
}

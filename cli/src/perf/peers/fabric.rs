//! The library libfabric, by its own `fi_pingpong`.

use std::process::Command;

use anyhow::{Context, Result};

use super::child::{free_port, line_of, run_pair};
use super::{Peer, Reading, SIZES};

const PINGPONG: &str = "fi_pingpong";

pub(super) const PEER: Peer = Peer {
    name: "libfabric",
    programs: &[PINGPONG],
    told: "fi_pingpong, tagged messages of the provider shm (the mean), which has no rows",
    version: || line_of("fi_info", &["--version"], "libfabric: "),
    round,
};

fn round(cores: &[usize]) -> Result<Vec<Reading>> {
    SIZES.iter().map(|size| measure(cores, *size)).collect()
}

fn measure(cores: &[usize], size: usize) -> Result<Reading> {
    let port = free_port()?.to_string();
    let often = ((8 << 20) / size).clamp(50, 5000).to_string();
    let pingpong = |side: &str| {
        let mut command = Command::new(PINGPONG);
        command.args(["-p", "shm", "-e", "rdm", "-m", "tagged", "-I", &often]);
        command.args(["-S", &size.to_string(), side, &port]);
        command
    };
    let (mut server, mut client) = (pingpong("-B"), pingpong("-P"));
    client.arg("127.0.0.1");
    let said = run_pair(&mut server, &mut client, port.parse()?, cores)?;
    parse(&said, size).with_context(|| format!("fi_pingpong has written: {said}"))
}

/// The speed has more digits than the time: 10^6 bytes a second, of one way.
fn parse(said: &str, size: usize) -> Option<Reading> {
    let lines: Vec<Vec<_>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    let heads = lines.iter().position(|line| line.first() == Some(&"bytes"))?;
    let at = lines[heads].iter().position(|head| *head == "MB/sec")?;
    let speed: f64 = lines.get(heads + 1)?.get(at)?.parse().ok()?;
    (speed > 0.0).then(|| Reading { is_latency: true, size, value: 1e3 * size as f64 / speed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_the_peer_program_is_parsed() {
        let said = "bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec\n\
                    64 1k =1k 125k 0.00s 80.00 0.80 1.36\n";
        let reading = parse(said, 64).unwrap();
        assert_eq!(reading, Reading { is_latency: true, size: 64, value: 800.0 });
        assert_eq!(parse("bytes MB/sec\n", 64), None);
    }
}

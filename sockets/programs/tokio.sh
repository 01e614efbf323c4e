#!/bin/sh
# Rust's tokio: an epoll that several threads serve, with many tasks; and hyper on top of it.
# shellcheck source=sockets/programs/common.sh
. "$(dirname "$0")/common.sh"
needs cargo

port=$(free_port)
web=$(free_port)
# What is built stays for the next time.
built="$(cd "$(dirname "$0")/../.." && pwd)/target/programs"

programs() {
    mkdir -p "$work/rust/src"
    cat >"$work/rust/Cargo.toml" <<'TOML'
[package]
name = "echo"
version = "0.0.0"
edition = "2024"

[dependencies]
http-body-util = "0.1"
hyper = { version = "1", features = ["client", "http1", "server"] }
hyper-util = { version = "0.1", features = ["tokio"] }
tokio = { version = "1", features = ["io-util", "macros", "net", "rt-multi-thread", "signal"] }

[workspace]
TOML
    cat >"$work/rust/src/main.rs" <<'RUST'
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Bytes, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Fault = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(worker_threads = 4)]
async fn main() -> Result<(), Fault> {
    let words: Vec<String> = std::env::args().collect();
    let [_, does, plain, web, seconds] = &words[..] else { return Err("five words".into()) };
    match (does.as_str(), seconds.parse()?) {
        ("serve", _) => serve(plain, web).await,
        (_, 0) => check(plain.clone(), web.clone()).await,
        (_, seconds) => measure(plain.clone(), Duration::from_secs(seconds)).await,
    }
}

async fn serve(plain: &str, web: &str) -> Result<(), Fault> {
    let (plain, web) = (TcpListener::bind(plain).await?, TcpListener::bind(web).await?);
    let mut over = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    loop {
        tokio::select! {
            stream = plain.accept() => drop(tokio::spawn(echo(stream?.0))),
            stream = web.accept() => {
                let http = hyper::server::conn::http1::Builder::new();
                let stream = TokioIo::new(stream?.0);
                tokio::spawn(http.serve_connection(stream, service_fn(answer)));
            }
            _ = over.recv() => return Ok(()),
        }
    }
}

async fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    let (mut from, mut to) = stream.split();
    tokio::io::copy(&mut from, &mut to).await?;
    to.shutdown().await
}

/// Frames of the body as they come.
async fn answer(request: Request<Incoming>) -> Result<Response<Incoming>, Fault> {
    Ok(Response::new(request.into_body()))
}

/// Bytes that nobody can guess.
fn random(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(&mut next).take(size).collect()
}

fn same(got: &[u8], sent: &[u8]) -> Result<(), Fault> {
    match got == sent {
        true => Ok(()),
        false => Err(format!("{} bytes came back otherwise", sent.len()).into()),
    }
}

async fn check(plain: String, web: String) -> Result<(), Fault> {
    let mut tasks = Vec::new();
    for (seed, size) in [1, 1000, 65536, 1_000_000, 10_000_000].into_iter().enumerate() {
        tasks.push(tokio::spawn(stream(plain.clone(), random(seed as u64, size))));
    }
    for seed in 0..200 {
        tasks.push(tokio::spawn(turns(plain.clone(), seed)));
    }
    for seed in 0..20 {
        tasks.push(tokio::spawn(requests(web.clone(), seed)));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// A task writes, another reads.
async fn stream(plain: String, sent: Vec<u8>) -> Result<(), Fault> {
    let (mut from, mut to) = TcpStream::connect(plain).await?.into_split();
    let reading = tokio::spawn(async move {
        let mut got = Vec::new();
        from.read_to_end(&mut got).await.map(|_| got)
    });
    to.write_all(&sent).await?;
    to.shutdown().await?;
    same(&reading.await??, &sent)
}

async fn turn(stream: &mut TcpStream, sent: &[u8]) -> Result<(), Fault> {
    stream.write_all(sent).await?;
    let mut got = vec![0; sent.len()];
    stream.read_exact(&mut got).await?;
    same(&got, sent)
}

async fn turns(plain: String, seed: u64) -> Result<(), Fault> {
    let mut stream = TcpStream::connect(plain).await?;
    stream.set_nodelay(true)?;
    for number in 0..100 {
        turn(&mut stream, &random(seed, 1 + number * 37 % 3000)).await?;
    }
    Ok(())
}

async fn requests(web: String, seed: u64) -> Result<(), Fault> {
    let stream = TokioIo::new(TcpStream::connect(web).await?);
    let (mut http, connection) = hyper::client::conn::http1::handshake(stream).await?;
    tokio::spawn(connection);
    for size in [0, 10, 1000, 300_000].repeat(5) {
        let sent = random(seed, size);
        let body = Full::new(Bytes::from(sent.clone()));
        let request = Request::post("/echo").header("host", "test").body(body)?;
        let got = http.send_request(request).await?.into_body().collect().await?.to_bytes();
        same(&got, &sent)?;
    }
    Ok(())
}

async fn measure(plain: String, time: Duration) -> Result<(), Fault> {
    for clients in [1, 50] {
        let end = Instant::now() + time;
        let one = |plain: String| async move {
            let mut stream = TcpStream::connect(plain).await?;
            stream.set_nodelay(true)?;
            let mut count = 0;
            while Instant::now() < end {
                turn(&mut stream, &[7; 64]).await?;
                count += 1;
            }
            Ok::<u64, Fault>(count)
        };
        let mut sum = 0;
        let tasks: Vec<_> = (0..clients).map(|_| tokio::spawn(one(plain.clone()))).collect();
        for task in tasks {
            sum += task.await??;
        }
        println!("turns/{clients} {} 1/s", sum as f64 / time.as_secs_f64());
    }
    Ok(())
}
RUST
    { build --offline || build; } >"$work/build.log" 2>&1 ||
        fail "cargo build: $(grep -m 3 ^error "$work/build.log")"
    cp "$built/release/echo" "$work/echo"
    serve server "$port" "$work/echo" serve "$ADDRESS:$port" "$ADDRESS:$web" 0
}

# Without asking the registry where all is there already.
build() {
    cargo build --quiet --release --manifest-path "$work/rust/Cargo.toml" --target-dir "$built" "$@"
}

talk() { client "$work/echo" talk "$ADDRESS:$port" "$ADDRESS:$web" "$1"; }

check() {
    programs
    talk 0 || fail "the client"
    by_rings 20000000
}

figures() {
    [ "$OVER" = tcp ] || return 0
    programs
    talk "$SECONDS_EACH"
}

main "$@"

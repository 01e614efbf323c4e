//! Calls of a program that has loaded the library, a case each, for counting their instructions:
//! `calls CASE COUNT`. `cargo xtask instructions` runs it under callgrind, with the library before
//! the C library.
//!
//! Both ends of the connection are in this process and thread, so that nobody waits.
use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The bytes of a message.
const BYTES: usize = 64;

/// When the connection must go by the ring at the latest.
const DEADLINE: Duration = Duration::from_secs(60);

fn connected() -> std::io::Result<[TcpStream; 2]> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    Ok([near, far])
}

/// Whether a message goes by the ring: the kernel has none of it.
fn is_by_ring([near, far]: &mut [TcpStream; 2]) -> std::io::Result<bool> {
    near.write_all(&[7; BYTES])?;
    let by_kernel = rustix::io::ioctl_fionread(&*far)?;
    far.read_exact(&mut [0; BYTES])?;
    Ok(by_kernel == 0)
}

/// Reads as one that waits, until the peer uses the ring.
fn warm_up(ends: &mut [TcpStream; 2]) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    while !is_by_ring(ends)? {
        if begun.elapsed() > DEADLINE {
            return Err("no ring: is libayre_sockets.so before the C library?".into());
        }
        let mut far = ends[1].try_clone()?;
        let reader = std::thread::spawn(move || far.read_exact(&mut [0; 1]));
        std::thread::yield_now();
        ends[0].write_all(&[7])?;
        reader.join().map_err(|_| "the reader ends")??;
    }
    Ok(())
}

/// A message: sent, and received.
fn message(count: u64) -> Result<(), Box<dyn Error>> {
    let mut ends = connected()?;
    warm_up(&mut ends)?;
    let [near, far] = &mut ends;
    let mut into = [0; BYTES];
    for _ in 0..count {
        let sent = near.write(black_box(&[7; BYTES]))?;
        let received = far.read(black_box(&mut into))?;
        assert_eq!((sent, received), (BYTES, BYTES), "there is room, and all is there");
    }
    match is_by_ring(&mut ends)? {
        true => Ok(()),
        false => Err("the ring was left".into()),
    }
}

/// A read of a file, with which the library has nothing to do.
fn file(count: u64) -> Result<(), Box<dyn Error>> {
    let mut file = File::open("/dev/zero")?;
    for _ in 0..count {
        assert_eq!(file.read(black_box(&mut [0; 8]))?, 8);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, case, count] = &arguments[..] else { return Err("usage: calls CASE COUNT".into()) };
    let count = count.parse()?;
    match case.as_str() {
        "send-recv-64" => message(count),
        "read-file" => file(count),
        _ => Err(format!("no case {case}").into()),
    }
}

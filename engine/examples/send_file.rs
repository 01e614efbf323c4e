//! Sends a file to another process by matched messages. The tag of a piece is its number: the
//! receiver takes the pieces in order although they are sent from the last to the first.
//!
//! ```sh
//! cargo run --release -p ayre --example send_file -- [FILE]
//! ```
//!
//! The program starts itself once more as the receiver. The two processes share nothing but an
//! address, which goes through a pipe here. Without an argument the file is this program.
use ayre::PostError;
use ayre::endpoint::{Address, Endpoint, Outcome, Pattern};
use std::error::Error;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::{env, fs};

const PIECE: usize = 256 << 10;
/// Tags that are no pieces.
const LENGTH: u64 = 1 << 32;
const DONE: u64 = LENGTH + 1;

fn main() -> Result<(), Box<dyn Error>> {
    match env::args().nth(1) {
        Some(argument) if argument == "--receive" => receive(),
        Some(file) => send(&fs::read(&file).map_err(|error| format!("{file}: {error}"))?),
        None => send(&fs::read(env::current_exe()?)?),
    }
}

/// Starts the receiver, which introduces itself with its first message, and sends it the file.
fn send(file: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut endpoint = Endpoint::open()?;
    let mut receiver = Command::new(env::current_exe()?);
    let mut receiver = receiver.arg("--receive").stdin(Stdio::piped()).spawn()?;
    receiver.stdin.take().ok_or("a pipe")?.write_all(&endpoint.address().to_bytes())?;
    let mut address = [0; Address::BYTES];
    endpoint.receive(Pattern::tag(LENGTH), &mut address)?;
    let to = endpoint.remote(&Address::from_bytes(&address).ok_or("an address")?)?;
    endpoint.send(to, LENGTH, &(file.len() as u64).to_le_bytes())?;
    let mut pieces: Vec<_> = (0..).zip(file.chunks(PIECE).map(<[u8]>::to_vec)).collect();
    let mut under_way = 0;
    while !pieces.is_empty() || under_way > 0 {
        if let Some((tag, piece)) = pieces.pop() {
            // A send that finds no room gives its buffer back.
            match endpoint.post_send(to, tag, piece) {
                Ok(_) => under_way += 1,
                Err(why) if matches!(why.error, PostError::Busy(_)) => {
                    pieces.push((tag, why.buffer));
                }
                Err(why) => return Err(why.error.into()),
            }
        }
        while let Some(finished) = endpoint.poll() {
            match finished.outcome {
                Outcome::Sent => under_way -= 1,
                other => return Err(format!("a piece was not sent: {other:?}").into()),
            }
        }
    }
    let mut sum = [0; 8];
    endpoint.receive(Pattern::tag(DONE).from(to), &mut sum)?;
    if u64::from_le_bytes(sum) != sum_of(file) {
        return Err("the receiver has other bytes".into());
    }
    println!("{} bytes sent, and received in order", file.len());
    receiver.wait()?;
    Ok(())
}

/// Receives a file from the endpoint whose address comes by the standard input.
fn receive() -> Result<(), Box<dyn Error>> {
    let mut address = [0; Address::BYTES];
    std::io::stdin().read_exact(&mut address)?;
    let mut endpoint = Endpoint::open()?;
    let from = endpoint.remote(&Address::from_bytes(&address).ok_or("an address")?)?;
    endpoint.send(from, LENGTH, &endpoint.address().to_bytes())?;
    let mut length = [0; 8];
    endpoint.receive(Pattern::tag(LENGTH).from(from), &mut length)?;
    let mut file = vec![0; u64::from_le_bytes(length) as usize];
    for (tag, piece) in (0..).zip(file.chunks_mut(PIECE)) {
        endpoint.receive(Pattern::tag(tag).from(from), piece)?;
    }
    endpoint.send(from, DONE, &sum_of(&file).to_le_bytes())?;
    Ok(())
}

/// A number that depends on each byte and its place.
fn sum_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum.rotate_left(5) ^ u64::from(*byte))
}

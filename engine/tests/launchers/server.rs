//! The launcher's side of PMI, as its sources have it: MPICH's `pmiserv_pmi_v1.c`.
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};

/// A change to answers. It gets the request and the right answer with its line feed; if it returns
/// no answer, the server hangs up.
pub(crate) type Spoil = dyn Fn(&str, String) -> Option<Vec<u8>> + Send + Sync;

/// A launcher's board for ranks that a test starts.
pub(crate) struct Server {
    size: usize,
    board: Mutex<Board>,
    changed: Condvar,
    spoil: Box<Spoil>,
}

#[derive(Default)]
struct Board {
    texts: HashMap<String, String>,
    /// Entries into barriers, of all ranks.
    entries: usize,
    finished: usize,
}

impl Server {
    /// One that does what it should.
    pub(crate) fn new(size: usize) -> Arc<Self> {
        Self::with(size, |_, answer| Some(answer.into_bytes()))
    }

    pub(crate) fn with(
        size: usize,
        spoil: impl Fn(&str, String) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (board, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { size, board, changed, spoil: Box::new(spoil) })
    }

    /// Serves one more rank; the socket is for it.
    pub(crate) fn attend(self: &Arc<Self>) -> OwnedFd {
        let (near, far) = UnixStream::pair().unwrap();
        let server = Arc::clone(self);
        std::thread::spawn(move || server.serve(&near));
        far.into()
    }

    /// How many barriers all ranks have passed, and how many ranks have said that they are done.
    pub(crate) fn passed(&self) -> (usize, usize) {
        let board = self.board.lock().unwrap();
        (board.entries / self.size, board.finished)
    }

    /// Waits until a text is put up, and returns it.
    pub(crate) fn text(&self, key: &str) -> String {
        let board = self.board.lock().unwrap();
        let is_missing = |board: &mut Board| !board.texts.contains_key(key);
        self.changed.wait_while(board, is_missing).unwrap().texts[key].clone()
    }

    fn serve(&self, rank: &UnixStream) {
        // A rank may end, or be killed, at any time.
        for request in BufReader::new(rank).lines().map_while(Result::ok) {
            let answer = self.answer(&request) + "\n";
            match (self.spoil)(&request, answer) {
                Some(answer) if (&mut &*rank).write_all(&answer).is_ok() => {}
                _ => return,
            }
        }
    }

    fn answer(&self, request: &str) -> String {
        let words: HashMap<_, _> =
            request.split(' ').map(|word| word.split_once('=').expect("name=value")).collect();
        let is_ours = || assert_eq!(words["kvsname"], "space.0", "{request}");
        match words["cmd"] {
            "init" => {
                assert_eq!((words["pmi_version"], words["pmi_subversion"]), ("1", "1"));
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".into()
            }
            "get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024".into(),
            "get_my_kvsname" => "cmd=my_kvsname kvsname=space.0".into(),
            "put" => {
                is_ours();
                let (key, value) = (words["key"], words["value"]);
                assert!(key.len() <= 64 && value.len() <= 1024 && request.len() < 1024);
                let mut board = self.board.lock().unwrap();
                let old = board.texts.insert(key.into(), value.into());
                assert_eq!(old, None, "{key} was put twice");
                self.changed.notify_all();
                "cmd=put_result rc=0 msg=success".into()
            }
            "barrier_in" => {
                self.barrier();
                "cmd=barrier_out".into()
            }
            "get" => {
                is_ours();
                match self.board.lock().unwrap().texts.get(words["key"]) {
                    Some(text) => format!("cmd=get_result rc=0 msg=success value={text}"),
                    None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".into(),
                }
            }
            "finalize" => {
                self.board.lock().unwrap().finished += 1;
                "cmd=finalize_ack".into()
            }
            other => panic!("{other}"),
        }
    }

    /// A rank that waits for one that never comes waits for as long as the test lasts.
    fn barrier(&self) {
        let mut board = self.board.lock().unwrap();
        let complete = (board.entries / self.size + 1) * self.size;
        board.entries += 1;
        self.changed.notify_all();
        let waits = |board: &mut Board| board.entries < complete;
        drop(self.changed.wait_while(board, waits).unwrap());
    }
}

//! Two ports in one process: the first operations in both modes.
use ayre::*;

fn check(mode: Mode) {
    let config = |n| Config::new().mode(mode).number(n);
    let (mut a, mut b) = Port::pair(config(0), config(1)).unwrap();
    let (pb, pa) = (a.peer(1).unwrap(), b.peer(0).unwrap());
    let region = b.alloc(1 << 16, RegionOptions::new()).unwrap();
    let grant = b.share(pa, &region, 0..1 << 16, Rights::all(), 7).unwrap();
    let remote = a.accept_region(pb, 7).unwrap();
    let data: Vec<u8> = (0..10000).map(|i| i as u8).collect();
    if mode == Mode::Mediated {
        b.start_engine().unwrap();
    }
    a.put(&remote, 5, &data, PostOptions::new().completer().requester().tag(3).value(9)).unwrap();
    a.send(pb, 4, b"after").unwrap();
    a.flush(pb).unwrap();
    let note = b.wait_notification(None).unwrap();
    println!("{note:?}");
    println!("{:?}", a.wait_notification(None).unwrap());
    let mut back = vec![0; 10000];
    region.read(5, &mut back);
    assert_eq!(back, data);
    let mut buf = [0; 64];
    println!("{:?}", b.recv(&mut buf, None).unwrap());
    let mut back = vec![0; 10000];
    a.get(&remote, 5, &mut back, PostOptions::new()).unwrap();
    assert_eq!(back, data);
    let mut long = vec![0; 60000];
    a.get(&remote, 5, &mut long, PostOptions::new()).unwrap();
    assert_eq!(long[..10000], data);
    assert_eq!(a.fetch_add(&remote, 32768, 5).unwrap(), 0);
    assert_eq!(a.fetch_add(&remote, 32768, 5).unwrap(), 5);
    println!("{:?}", a.fcaa(&remote, 32768, 5, 5).unwrap());
    b.revoke(grant).unwrap();
    println!("{:?}", a.put(&remote, 5, &data, PostOptions::new()));
    println!("{:?}", a.flush(pb));
    println!("{:?}", a.wait_notification(None).unwrap());
}

#[test]
fn direct() {
    check(Mode::Direct);
}

#[test]
fn mediated() {
    check(Mode::Mediated);
}

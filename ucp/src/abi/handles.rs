//! Objects that programs know by their address alone.

macro_rules! opaque {
    ($($name:ident)*) => {
        $(#[derive(Debug)]
        #[repr(C)]
        pub struct $name {
            _nothing: [u8; 0],
        })*
    };
}

opaque! {
    Address
    ConnRequest
    Ep
    Mem
    Rkey
}

//! Arrays that are made where they stay. One that is made first and boxed then comes over the
//! stack, of which a thread of a program may have little.
use alloc::boxed::Box;

/// An array on the heap, each element made by its index.
pub fn array<T, const N: usize>(element: impl FnMut(usize) -> T) -> Box<[T; N]> {
    let all: Box<[T]> = (0..N).map(element).collect();
    match all.try_into() {
        Ok(all) => all,
        Err(_) => unreachable!("so many were made"),
    }
}

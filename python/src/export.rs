//! Regions as buffers of Python.
use crate::memory::Region;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;

#[pymethods]
impl Region {
    /// Gives the bytes of the region as a buffer that can be written.
    ///
    /// # Safety
    /// The interpreter calls it, with a view that it has made room for.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        let (first, len) = (this.region.address().as_ptr().cast(), this.region.len() as isize);
        // SAFETY: the region has these bytes as long as the object lives, to which the view has a
        // reference.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), first, len, 0, flags) };
        if filled != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        this.views.begin();
        Ok(())
    }

    /// A view has ended.
    ///
    /// # Safety
    /// The interpreter calls it, once for each view.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.end();
    }
}

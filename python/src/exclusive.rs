//! A value that one thread uses at a time, locked by the GIL.
//!
//! A `Mutex` would take 8 of the 45 ns of `Sieve.add`: its two locked instructions wait for all memory accesses before them. Whoever calls
//! `add` has the GIL already. So whether the value is taken is a plain flag, which only threads with the GIL read and write. Without the GIL
//! the module is not loaded.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How long a thread waits before it looks again. One that adds a batch needs about as long.
const WAIT: Duration = Duration::from_micros(50);

/// A value that one thread uses at a time.
pub(crate) struct Exclusive<T> {
    is_taken: AtomicBool,
    /// The process whose thread has the value without the GIL.
    process: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: references to the value come from `Taken` only, and there is one at a time: `is_taken` is read and then set by a thread that has the
// GIL all the while, and cleared by one that has it. The GIL orders what its holders do, so relaxed accesses suffice.
#[expect(unsafe_code, reason = "the compiler cannot see the GIL")]
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            process: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until no other thread has the value.
    #[inline]
    pub(crate) fn wait(&self, py: Python<'_>) {
        while self.is_taken.load(Ordering::Relaxed) {
            self.wait_once(py);
        }
    }

    /// Takes the value. While another thread has it, this one waits without the GIL.
    #[inline]
    pub(crate) fn take<'py>(&self, py: Python<'py>) -> Taken<'_, 'py, T> {
        self.wait(py);
        self.is_taken.store(true, Ordering::Relaxed);
        Taken { of: self, py }
    }

    #[cold]
    fn wait_once(&self, py: Python<'_>) {
        if self.process.load(Ordering::Relaxed) == process::id() {
            py.detach(|| thread::sleep(WAIT));
        } else {
            // This process was forked meanwhile, without that thread, which only read the value.
            self.is_taken.store(false, Ordering::Relaxed);
        }
    }
}

/// The value, until it is dropped. It cannot be sent to another thread, nor dropped without the GIL.
pub(crate) struct Taken<'a, 'py, T> {
    of: &'a Exclusive<T>,
    py: Python<'py>,
}

impl<T: Sync> Taken<'_, '_, T> {
    /// Reads the value without the GIL.
    pub(crate) fn read_detached<R: Send>(&self, read: impl Send + FnOnce(&T) -> R) -> R {
        self.of.process.store(process::id(), Ordering::Relaxed);
        let value: &T = self;
        self.py.detach(|| read(value))
    }
}

impl<T> Deref for Taken<'_, '_, T> {
    type Target = T;

    #[inline]
    #[expect(unsafe_code, reason = "see `Exclusive`")]
    fn deref(&self) -> &T {
        // SAFETY: there is one `Taken` of the value at a time.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for Taken<'_, '_, T> {
    #[inline]
    #[expect(unsafe_code, reason = "see `Exclusive`")]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one `Taken` of the value at a time.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T> Drop for Taken<'_, '_, T> {
    #[inline]
    fn drop(&mut self) {
        self.of.is_taken.store(false, Ordering::Relaxed);
    }
}

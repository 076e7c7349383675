// SPDX-License-Identifier: Apache-2.0
//! Runs untrusted work on a thread of its own with limits on memory and processor time. A thread over its limit cannot be
//! unwound from inside an allocation, so it is parked there for good and its work abandoned: no memory error, no more
//! memory, no more time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::abi::panic_text;

const MEMORY_BYTES: i64 = 64 << 20;
const PROCESSOR_TIME: Duration = Duration::from_millis(800);
const WALL_TIME: Duration = Duration::from_secs(20);
// Values may nest as deep as fuel allows, and are freed recursively; untouched stack costs nothing.
const STACK_BYTES: usize = 256 << 20;

struct Gauge {
    used_bytes: AtomicI64,
    over: AtomicBool,
}

thread_local! {
    static GAUGE: Cell<*const Gauge> = const { Cell::new(std::ptr::null()) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn account(delta_bytes: i64) {
    let gauge = GAUGE.try_with(Cell::get).unwrap_or(std::ptr::null());
    if gauge.is_null() {
        return;
    }
    // SAFETY: set by `run` on this thread, which keeps the gauge alive.
    let gauge = unsafe { &*gauge };
    let used = gauge.used_bytes.fetch_add(delta_bytes, Ordering::Relaxed) + delta_bytes;
    if delta_bytes > 0 && (used > MEMORY_BYTES || gauge.over.load(Ordering::Relaxed)) {
        gauge.over.store(true, Ordering::Relaxed);
        loop {
            std::thread::sleep(Duration::from_secs(3600));
        }
    }
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        account(layout.size() as i64);
        System.alloc(layout)
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        account(layout.size() as i64);
        System.alloc_zeroed(layout)
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        account(-(layout.size() as i64));
        System.dealloc(memory, layout)
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        account(new_size as i64 - layout.size() as i64);
        System.realloc(memory, layout, new_size)
    }
}

fn processor_time(clock: libc::clockid_t) -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec. The thread of the clock has not ended: it still owes its answer.
    if unsafe { libc::clock_gettime(clock, &mut now) } != 0 {
        return Duration::ZERO;
    }
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

pub enum Refusal {
    /// The work passed a limit, which the text names.
    Limit(String),
    /// The system gave no thread; another time it may.
    NoThread(String),
}

/// Runs `work` within the limits.
pub fn run<T, F>(work: F) -> Result<T, Refusal>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let gauge = Arc::new(Gauge { used_bytes: AtomicI64::new(0), over: AtomicBool::new(false) });
    let (send, receive) = sync_channel(1);
    let (send_clock, receive_clock) = sync_channel(1);
    let theirs = gauge.clone();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let mut clock: libc::clockid_t = 0;
        // SAFETY: asks for the clock of the running thread.
        let known = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) } == 0;
        let _ = send_clock.send(known.then_some(clock));
        GAUGE.with(|gauge| gauge.set(Arc::as_ptr(&theirs)));
        let outcome = catch_unwind(AssertUnwindSafe(work)).map_err(panic_text);
        GAUGE.with(|gauge| gauge.set(std::ptr::null()));
        let _ = send.send(outcome);
    });
    let thread = thread.map_err(|error| Refusal::NoThread(error.to_string()))?;
    let clock = receive_clock.recv().ok().flatten();
    let start = Instant::now();
    loop {
        match receive.recv_timeout(Duration::from_millis(20)) {
            Ok(outcome) => {
                let _ = thread.join();
                return outcome.map_err(Refusal::Limit);
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Refusal::Limit("the template's thread ended early".into())),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if gauge.over.load(Ordering::Relaxed) {
            return Err(Refusal::Limit(format!("the template uses more than {} MB of memory", MEMORY_BYTES >> 20)));
        }
        let spent = clock.map_or(Duration::ZERO, processor_time);
        if spent > PROCESSOR_TIME || start.elapsed() > WALL_TIME {
            gauge.over.store(true, Ordering::Relaxed);
            return Err(Refusal::Limit("the template takes more than 1 s".into()));
        }
    }
}

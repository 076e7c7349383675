// SPDX-License-Identifier: Apache-2.0
//! Limits for untrusted work on the calling thread: steps, live memory and stack. The work asks as it goes and ends with
//! an error, so that nothing is left behind. Steps and memory depend on the work alone: what is refused once is refused
//! on every machine and every rank.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

const STEPS: u64 = 10_000_000;
const MEMORY_BYTES: i64 = 64 << 20;
// Threads have 2 MB at least; a template of a hundred nested macros uses a fifth of this.
const STACK_BYTES: usize = 1 << 20;

thread_local! {
    static STEPS_LEFT: Cell<u64> = const { Cell::new(0) };
    static USED_BYTES: Cell<i64> = const { Cell::new(0) };
    static STACK_TOP: Cell<usize> = const { Cell::new(0) };
}

/// Counts what is live on each thread; between two readings it tells what the work holds.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn account(delta_bytes: i64) {
    let _ = USED_BYTES.try_with(|used| used.set(used.get().wrapping_add(delta_bytes)));
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

#[inline(never)]
fn stack_position() -> usize {
    let here = 0u8;
    std::hint::black_box(std::ptr::from_ref(&here)) as usize
}

/// Opens a fresh budget on this thread, of which `held_bytes` are used.
pub fn open(held_bytes: i64) {
    STEPS_LEFT.set(STEPS);
    USED_BYTES.set(held_bytes);
    STACK_TOP.set(stack_position());
}

/// What is live since the budget was opened.
pub fn used_bytes() -> i64 {
    USED_BYTES.get()
}

/// Spends steps. Call it before the work, in every loop and at every node.
pub fn spend(steps: usize) -> Result<(), String> {
    let left = STEPS_LEFT.get();
    if left < steps as u64 {
        STEPS_LEFT.set(0);
        return Err(format!("the template takes more than {STEPS} steps"));
    }
    STEPS_LEFT.set(left - steps as u64);
    reserve(0)
}

/// Fails if `bytes` more would pass the memory limit. Call it before one large allocation.
pub fn reserve(bytes: usize) -> Result<(), String> {
    if USED_BYTES.get().saturating_add(bytes.min(1 << 60) as i64) > MEMORY_BYTES {
        return Err(format!("the template uses more than {} MB of memory", MEMORY_BYTES >> 20));
    }
    Ok(())
}

/// Fails before the stack runs out. Call it in every recursion that the template or its values decide.
pub fn descend() -> Result<(), String> {
    if STACK_TOP.get().saturating_sub(stack_position()) > STACK_BYTES {
        return Err("the template nests too deeply".into());
    }
    Ok(())
}

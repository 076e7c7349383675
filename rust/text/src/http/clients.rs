// SPDX-License-Identifier: Apache-2.0
//! Places for clients, of which those without an answer under way are given up for newer clients.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

pub struct Place {
    answers: AtomicUsize, // under way
    given_up: Notify,
    changed: Arc<Notify>,  // an answer ended or a place was freed
}

impl Place {
    pub async fn given_up(&self) {
        self.given_up.notified().await
    }
}

/// Keeps the place of a client until its answer went out.
pub struct Answering(Arc<Place>);

impl Answering {
    pub fn on(place: Arc<Place>) -> Answering {
        place.answers.fetch_add(1, Ordering::Relaxed);
        Answering(place)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answers.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_one();
    }
}

#[derive(Clone)]
pub struct Places {
    taken: Arc<Mutex<VecDeque<Arc<Place>>>>, // the oldest first
    limit: usize,
    changed: Arc<Notify>,
}

impl Places {
    pub fn new(limit: usize) -> Places {
        Places { taken: Arc::default(), limit, changed: Arc::default() }
    }

    /// Waits only while all clients are being answered.
    pub async fn take(&self) -> Arc<Place> {
        loop {
            if self.num_taken() >= self.limit {
                self.give_up_one();
            }
            if self.num_taken() < self.limit {
                let place = Arc::new(Place {
                    answers: AtomicUsize::new(0),
                    given_up: Notify::new(),
                    changed: self.changed.clone(),
                });
                self.taken.lock().unwrap().push_back(place.clone());
                return place;
            }
            self.changed.notified().await;
        }
    }

    pub fn give_up_one(&self) {
        let mut taken = self.taken.lock().unwrap();
        let idle = taken.iter().position(|place| place.answers.load(Ordering::Relaxed) == 0);
        if let Some(place) = idle.and_then(|at| taken.remove(at)) {
            place.given_up.notify_one();
        }
    }

    pub fn free(&self, place: &Arc<Place>) {
        self.taken.lock().unwrap().retain(|other| !Arc::ptr_eq(other, place));
        self.changed.notify_one();
    }

    fn num_taken(&self) -> usize {
        self.taken.lock().unwrap().len()
    }
}

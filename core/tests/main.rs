//! The tests of the core by its API. In one binary, which is linked once: a change is met sooner.
mod capacity;
mod clock;
mod counter;
mod errors;
mod fuzzed;
mod inverse;
mod layout;
mod lease;
mod line;
mod reservation;
mod segment;
mod text;
mod vectors;

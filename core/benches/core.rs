//! What the core costs without a server: `cargo bench -p snowflake_core`. Criterion compares with the run before.
#![cfg(not(loom))]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use snowflake_core::segment::{Counter, Range};
use snowflake_core::text::Form;
use snowflake_core::{Field, Layout, Line, Policy, Position, Reach, Tick, Ticks, UnixMicros, notation};
use std::hint::black_box;

/// A tick in which claims are made, in the year 2026.
const NOW: Tick = Tick(91_000_000_000);

/// A layout with two million sequence numbers a tick: with the reach below, no claim is refused.
fn wide() -> Layout {
    "timestamp=41 worker=1 sequence=21".parse().unwrap()
}

fn reach(layout: &Layout) -> Reach {
    let policy = Policy { max_burst: Ticks(1 << 30), max_lead: Ticks(1 << 30), spread: 64 };
    Reach { policy, limit: layout.last_tick(), now: NOW, gives_way: false }
}

fn line(layout: &Layout) -> Line {
    let line = Line::new();
    line.switch_worker(layout, layout.place_worker(None, Some(1)).unwrap());
    line
}

fn claim(criterion: &mut Criterion) {
    let layout = wide();
    let (reach, line) = (reach(&layout), line(&layout));
    let open = reach.open_range(&layout);
    let mut group = criterion.benchmark_group("claim");
    // All that an ordinary call does, except to read the clock.
    group.bench_function("one, in an open range, composed", |bencher| {
        bencher.iter(|| {
            let claim = line.claim_in(black_box(&open), 1).unwrap();
            layout.compose(claim.first, claim.worker)
        });
    });
    group
        .bench_function("one, by reach", |bencher| bencher.iter(|| line.claim(&layout, black_box(&reach), 1).unwrap()));
    // What is added when the clock has reached another tick.
    let micros = layout.start_of(NOW);
    group.bench_function("the open range of a tick", |bencher| {
        bencher.iter(|| {
            let now = layout.tick_at(black_box(micros));
            Reach { now, ..reach }.open_range(&layout)
        });
    });
    group.finish();
}

/// A number of a segment.
fn segment(criterion: &mut Criterion) {
    let counter = Counter::new();
    counter.install(Range { first: 1, end: 1 << 62 });
    criterion.bench_function("a number of a segment", |bencher| {
        bencher.iter(|| black_box(&counter).claim(1).unwrap().first)
    });
}

fn batch(criterion: &mut Criterion) {
    let layout = wide();
    let line = line(&layout);
    let open = reach(&layout).open_range(&layout);
    let mut group = criterion.benchmark_group("batch");
    group.throughput(Throughput::Elements(1024));
    group.bench_function("1024, composed", |bencher| {
        bencher.iter(|| {
            let claim = line.claim_in(black_box(&open), 1024).unwrap();
            (0..claim.count).fold(0, |sum, at| {
                let position = Position(claim.first.0 + at);
                sum ^ layout.compose(position, claim.worker)
            })
        });
    });
    group.finish();
}

fn decode(criterion: &mut Criterion) {
    let layout = notation::default_layout();
    let id = 382_304_429_472_247_813;
    let mut group = criterion.benchmark_group("decode");
    group.bench_function("timestamp", |bencher| bencher.iter(|| layout.timestamp(black_box(id)).unwrap()));
    group.bench_function("worker", |bencher| bencher.iter(|| layout.field(black_box(id), Field::Worker).unwrap()));
    group.bench_function("all parts", |bencher| bencher.iter(|| layout.decode(black_box(id)).unwrap()));
    let parts = layout.decode(id).unwrap();
    group.bench_function("encode", |bencher| bencher.iter(|| layout.encode(black_box(&parts)).unwrap()));
    let instant = UnixMicros::from_millis(1_795_000_000_000);
    group.bench_function("lowest ID from", |bencher| bencher.iter(|| layout.lowest_id_from(black_box(instant))));
    group.bench_function("highest ID before", |bencher| bencher.iter(|| layout.highest_id_before(black_box(instant))));
    group.finish();
}

fn texts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("text");
    let notation = "timestamp=41 worker=9 sequence=13 tick=1ms epoch=2024-01-01T00:00:00Z";
    group.bench_function("parse a layout", |bencher| bencher.iter(|| black_box(notation).parse::<Layout>().unwrap()));
    let form = Form::named("base62").unwrap();
    let written = form.write(382_304_429_472_247_813).unwrap();
    group.bench_function("write base62", |bencher| bencher.iter(|| form.write(black_box(382_304_429_472_247_813))));
    group.bench_function("read base62", |bencher| bencher.iter(|| form.read(black_box(&written)).unwrap()));
    group.finish();
}

criterion_group!(benches, claim, segment, batch, decode, texts);
criterion_main!(benches);

use std::sync::mpsc;

use super::*;
use crate::testing::Latch;

const HOUR: Duration = Duration::from_hours(1);

fn pool(threads: usize, lane_threads: usize, waiting: usize) -> Arc<Pool> {
    Arc::new(
        Pool::start(
            "test",
            PoolLimits {
                threads,
                lane_threads,
                waiting,
            },
        )
        .unwrap(),
    )
}

fn lane(name: &'static str) -> Lane {
    Lane {
        controller: name,
        plugins: vec!["slow".to_owned()],
    }
}

/// Submits a job that reports the name of its lane when it begins, and ends when the gate is open.
fn spawn(
    pool: &Arc<Pool>,
    name: &'static str,
    begun: &mpsc::Sender<&'static str>,
    gate: &Latch,
) -> tokio::task::JoinHandle<Result<&'static str, Unanswered>> {
    let (pool, begun, gate) = (Arc::clone(pool), begun.clone(), gate.clone());
    tokio::spawn(async move {
        let job = move || {
            begun.send(name).unwrap();
            gate.pass();
            name
        };
        pool.run(lane(name), HOUR, job).await
    })
}

#[tokio::test]
async fn a_lane_whose_plugins_block_leaves_threads_for_other_lanes() {
    let (pool, gate, (begun, begins)) = (pool(3, 2, 100), Latch::default(), mpsc::channel());
    let blocked: Vec<_> = (0..4).map(|_| spawn(&pool, "blocked", &begun, &gate)).collect();
    tokio::task::yield_now().await;
    for _ in 0..2 {
        assert_eq!(begins.recv().unwrap(), "blocked");
    }
    let open = Latch::default();
    open.open();
    for _ in 0..5 {
        assert_eq!(spawn(&pool, "quick", &begun, &open).await.unwrap(), Ok("quick"));
        assert_eq!(begins.recv().unwrap(), "quick", "a third job of the blocked lane began");
    }
    gate.open();
    for job in blocked {
        assert_eq!(job.await.unwrap(), Ok("blocked"));
    }
}

#[tokio::test]
async fn lanes_are_served_in_turn() {
    let (pool, gate, (begun, begins)) = (pool(1, 1, 100), Latch::default(), mpsc::channel());
    let jobs: Vec<_> = ["first", "many", "many", "many", "one"]
        .map(|name| spawn(&pool, name, &begun, &gate))
        .into_iter()
        .collect();
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
    assert_eq!(begins.recv().unwrap(), "first");
    gate.open();
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    assert_eq!(begins.try_iter().collect::<Vec<_>>(), ["many", "one", "many", "many"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_did_not_begin_in_time_is_dropped() {
    let (pool, gate, (begun, begins)) = (pool(1, 1, 100), Latch::default(), mpsc::channel());
    let running = spawn(&pool, "running", &begun, &gate);
    tokio::task::yield_now().await;
    assert_eq!(begins.recv().unwrap(), "running");
    let late = begun.clone();
    // The paused clock advances once nothing else can happen.
    let limit = Duration::from_secs(30);
    let outcome = pool.run(lane("late"), limit, move || late.send("late").unwrap()).await;
    assert_eq!(outcome, Err(Unanswered::Deadline(limit)));
    tokio::time::resume();
    gate.open();
    assert_eq!(running.await.unwrap(), Ok("running"));
    assert_eq!(
        pool.run(lane("after"), HOUR, move || begun.send("after").unwrap())
            .await,
        Ok(())
    );
    assert_eq!(begins.try_iter().collect::<Vec<_>>(), ["after"]);
}

#[tokio::test]
async fn a_full_queue_refuses() {
    let (pool, gate, (begun, begins)) = (pool(1, 1, 1), Latch::default(), mpsc::channel());
    let running = spawn(&pool, "running", &begun, &gate);
    tokio::task::yield_now().await;
    assert_eq!(begins.recv().unwrap(), "running");
    let waiting = spawn(&pool, "waiting", &begun, &gate);
    tokio::task::yield_now().await;
    assert_eq!(pool.run(lane("third"), HOUR, || ()).await, Err(Unanswered::QueueFull));
    gate.open();
    assert_eq!(
        (running.await.unwrap(), waiting.await.unwrap()),
        (Ok("running"), Ok("waiting"))
    );
    assert!(pool.0.lock().lanes.values().all(|queue| queue.jobs.is_empty()));
}

#[tokio::test]
async fn a_panic_of_a_job_reaches_its_caller_and_the_thread_goes_on() {
    let pool = pool(1, 1, 1);
    let panicking = Arc::clone(&pool);
    let outcome = tokio::spawn(async move { panicking.run(lane("a"), HOUR, || panic!("a bug")).await }).await;
    assert!(outcome.unwrap_err().is_panic());
    assert_eq!(pool.run(lane("a"), HOUR, || 7).await, Ok(7));
}

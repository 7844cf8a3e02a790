//! Queue of spans, and the thread that sends them.
//!
//! The thread and its queue are those of the SDK. Spans are counted and bounded here, because its counts are private.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use opentelemetry_otlp::{WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanExporter, SpanProcessor as _};
use tracing::{debug, warn};

use super::client::{BlockingClient, LastError};
use super::settings::Settings;

/// Target of the log lines of the exporter.
const TARGET: &str = "bulkhead::traces";

/// Counts of spans.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    /// Spans in the queue.
    waiting: AtomicUsize,
    exported: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

impl SpanCounts {
    /// Returns the number of spans by result: those that the receiver accepted, those that could not be sent, and
    /// those that found the queue full.
    pub(crate) fn results(&self) -> [(&'static str, u64); 3] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("exported", count(&self.exported)),
            ("failed", count(&self.failed)),
            ("dropped", count(&self.dropped)),
        ]
    }
}

/// Exporter of spans.
pub(super) struct Exporter {
    processor: BatchSpanProcessor,
    counts: Arc<SpanCounts>,
    queue_max: usize,
    endpoint: String,
}

impl Exporter {
    /// Starts the thread that sends spans.
    pub(super) fn start(settings: &Settings) -> Result<Self, String> {
        let last_error = LastError::default();
        let client = BlockingClient::new(settings.timeout, settings.ca_file.as_deref(), Arc::clone(&last_error))?;
        let sender = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(&settings.endpoint)
            .with_timeout(settings.timeout)
            .build()
            .map_err(|error| error.to_string())?;
        let counts = Arc::<SpanCounts>::default();
        let mut sender = CountingSender {
            sender,
            counts: Arc::clone(&counts),
            last_error,
        };
        sender.set_resource(&resource(settings.is_named));
        Ok(Self::of(sender, settings, counts))
    }

    /// Starts the thread with any sender.
    pub(super) fn of(sender: impl SpanExporter + 'static, settings: &Settings, counts: Arc<SpanCounts>) -> Self {
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(settings.queue_max)
            .with_max_export_batch_size(settings.batch_max)
            .with_scheduled_delay(settings.delay);
        let processor = BatchSpanProcessor::builder(sender).with_batch_config(batches.build());
        Self {
            processor: processor.build(),
            counts,
            queue_max: settings.queue_max,
            endpoint: settings.shown_endpoint(),
        }
    }

    /// Returns the URL of the receiver, without user and password.
    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the counts of spans.
    pub(super) fn counts(&self) -> Arc<SpanCounts> {
        Arc::clone(&self.counts)
    }

    /// Queues a span. If the queue is full, the span is dropped and counted; no caller waits.
    pub(super) fn submit(&self, span: SpanData) {
        if self.counts.waiting.fetch_add(1, Ordering::Relaxed) >= self.queue_max {
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            self.count_dropped(1);
            return;
        }
        self.processor.on_end(span);
    }

    /// Counts spans that are dropped.
    pub(super) fn count_dropped(&self, spans: usize) {
        let spans = u64::try_from(spans).unwrap_or(u64::MAX);
        self.counts.dropped.fetch_add(spans, Ordering::Relaxed);
    }

    /// Sends the spans in the queue within a time, and ends the thread.
    pub(super) fn end(&self, within: Duration) {
        if let Err(error) = self.processor.shutdown_with_timeout(within) {
            debug!(target: TARGET, "the last spans are not sent: {error}");
        }
    }
}

/// Sender that counts spans and logs failures.
pub(super) struct CountingSender<S> {
    pub(super) sender: S,
    pub(super) counts: Arc<SpanCounts>,
    pub(super) last_error: LastError,
}

impl<S> fmt::Debug for CountingSender<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountingSender").finish_non_exhaustive()
    }
}

impl<S: SpanExporter> SpanExporter for CountingSender<S> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        self.counts.waiting.fetch_sub(spans, Ordering::Relaxed);
        let result = self.sender.export(batch).await;
        let counter = match &result {
            Ok(()) => &self.counts.exported,
            Err(_) => &self.counts.failed,
        };
        counter.fetch_add(u64::try_from(spans).unwrap_or(u64::MAX), Ordering::Relaxed);
        if let Err(error) = &result {
            // The number of spans is a metric. Here it would make each line a new one for the limit of repetitions.
            let cause = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let cause = cause.unwrap_or_else(|| error.to_string());
            warn!(target: TARGET, "cannot export traces: {cause}");
        }
        result
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.sender.set_resource(resource);
    }
}

/// Returns the attributes of the process: those of the environment, and the name `bulkhead` if it has none.
fn resource(is_named: bool) -> Resource {
    let builder = Resource::builder();
    if is_named {
        builder.build()
    } else {
        builder.with_service_name("bulkhead").build()
    }
}

//! Rehearsal of a loss of clusters. The program provides it: the console knows neither exports nor control planes.

use bulkhead_controllers::flags::GoDuration;
use bulkhead_simulator::what_if::Answer;

use crate::query::Parameters;

/// Loss of clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Names of the clusters.
    pub down: Vec<String>,
    /// Duration of the loss; `None` means permanent.
    pub lasts: Option<GoDuration>,
    /// Evictions per second; `None` for the configured rate.
    pub rate: Option<f64>,
}

/// Result of a rehearsal.
#[derive(Debug, Default)]
pub struct Rehearsed {
    /// Moves, workloads that stay, and the load before and after.
    pub answer: Answer,
    /// Notes on the objects and the settings, one sentence each.
    pub notes: Vec<String>,
    /// Name of the objects that the rehearsal began with.
    pub objects: String,
}

/// Rehearsal on a copy of the objects of a control plane.
pub trait Rehearsal: Send + Sync + 'static {
    /// Runs the controllers after a loss. May block for minutes.
    ///
    /// # Errors
    ///
    /// The objects cannot be read, a cluster is unknown, or a setting is out of range.
    fn play(&self, loss: &Loss) -> anyhow::Result<Rehearsed>;
}

impl Loss {
    /// Reads the loss of a form; `None` if it names no cluster.
    ///
    /// # Errors
    ///
    /// A value is no duration, or no number.
    pub fn read(parameters: &Parameters) -> Result<Option<Self>, String> {
        let down = parameters
            .text("down")
            .split([',', ' '])
            .filter(|name| !name.is_empty());
        let down: Vec<_> = down.map(str::to_owned).collect();
        let lasts = parameters.get("for").map(str::parse::<GoDuration>).transpose();
        let lasts = lasts.map_err(|error| format!("for: {error}"))?;
        let number = |text: &str| match text.parse::<f64>() {
            Ok(rate) if rate.is_finite() && rate >= 0.0 => Ok(rate),
            _ => Err(format!("rate: {text:?} is not a number of evictions per second")),
        };
        let rate = parameters.get("rate").map(number).transpose()?;
        Ok((!down.is_empty()).then_some(Self { down, lasts, rate }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_names_clusters_a_duration_and_a_rate() {
        let read = |query: &str| Loss::read(&Parameters::parse(query).unwrap());
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("down=+,+&rate=1"), Ok(None));
        let loss = read("down=m1,+m2&for=30m&rate=0.5").unwrap().unwrap();
        assert_eq!(
            (loss.down, loss.rate),
            (vec!["m1".to_owned(), "m2".to_owned()], Some(0.5))
        );
        assert_eq!(loss.lasts.unwrap().as_secs(), 1800);
        assert!(read("down=m1&for=soon").unwrap_err().contains("is not a duration"));
        assert!(read("down=m1&rate=-1").unwrap_err().contains("is not a number"));
    }
}

//! Headings and environment variables that several commands share.
//!
//! Arguments without a heading are the common ones and come first. All arguments of a shared group have an explicit
//! heading, because clap applies `next_help_heading` to all subsequent arguments of a command.

/// Connection to the control plane.
pub const CONTROL_PLANE: &str = "Control plane";
/// Connection to a member cluster.
pub const MEMBER: &str = "Member cluster";
/// Plugins and their engines.
pub const PLUGINS: &str = "Plugins";
/// Registries that plugins are pulled from.
pub const REGISTRIES: &str = "Registries of plugins";
/// Addresses that a process listens on.
pub const ENDPOINTS: &str = "Endpoints";

/// Log of a process.
pub const LOG: &str = "Log";

/// Environment variable of the configuration file.
pub const CONFIG_VARIABLE: &str = "BULKHEAD_CONFIG";
/// Environment variable of the journal that processes write and commands read. Simulations do not use it, because
/// each needs a directory of its own.
pub const JOURNAL_VARIABLE: &str = "BULKHEAD_JOURNAL";
/// Environment variable of the plugin directory or list.
pub const PLUGINS_VARIABLE: &str = "BULKHEAD_PLUGINS";
/// Environment variable of the format of the log.
pub const LOG_FORMAT_VARIABLE: &str = "BULKHEAD_LOG_FORMAT";
/// Environment variable of the filter of the log.
pub const LOG_FILTER_VARIABLE: &str = "BULKHEAD_LOG_FILTER";

//! Describes devices as data: presets with changes, real drives, the ideal drive `mem`, no drive, or a
//! translation layer without time. A log-structured layer above a drive is described here too.

mod observed;

pub use observed::AnyDrive;
pub(crate) use observed::Observed;

use crate::StackError;
use fulgurite_base::option::{self, COUNT, COUNT_64, SIZE, YES_NO};
use fulgurite_base::{Choice, Declared, Form, Opt, Spec, SpecError, opt, units};
use fulgurite_files::output::is_standard;
use fulgurite_files::{holds_store, obstacle};
use fulgurite_ftl::FtlConfig;
use fulgurite_log::LogConfig;
use fulgurite_ssd::SsdConfig;
use fulgurite_ssd::preset::{self, Bounds, Preset, Target};
use std::path::{Path, PathBuf};

/// The description of a device.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// The label of the device in tables, which is the text that the user typed.
    pub label: String,
    /// The kind of the device, with its parameters.
    pub drive: DriveConfig,
}

/// A kind of device, with its parameters.
#[derive(Clone, Debug)]
pub enum DriveConfig {
    /// No device: the misses of a pool are counted, without time.
    None,
    /// A translation layer alone: flash operations are counted, without time.
    Translation(TranslationConfig),
    /// A drive on which every request takes no time.
    Mem(MemConfig),
    /// A file or a block device.
    File(FileConfig),
    /// A simulated drive.
    Simulated {
        /// The name of the preset on which the drive is based.
        preset: &'static str,
        /// All parameters of the drive, with the changes to the preset.
        config: Box<SsdConfig>,
    },
}

/// A translation layer without a drive.
#[derive(Clone, Debug)]
pub struct TranslationConfig {
    /// The geometry and the policies of the translation layer.
    pub ftl: FtlConfig,
    /// The size of a page in bytes.
    pub page_bytes: u32,
    /// The labels of placement and victim policy in tables, as they were typed, so that rows show the values
    /// of an axis unchanged.
    pub labels: [String; 2],
}

/// A drive on which every request takes no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemConfig {
    /// The number of pages of the drive.
    pub pages: u64,
    /// The size of a page in bytes.
    pub page_bytes: u64,
}

impl Default for MemConfig {
    fn default() -> MemConfig {
        MemConfig { pages: 1 << 32, page_bytes: 512 }
    }
}

impl Declared for MemConfig {
    const OPTIONS: &'static [Opt<MemConfig>] = &[
        opt!("pages", pages, COUNT_64, 1 => 1 << 48, "pages of the drive"),
        opt!("page", page_bytes, SIZE, 512 => 1 << 20, "bytes in a page, a power of two"),
    ];
}

/// A file or block device.
#[derive(Clone, Debug, Default)]
pub struct FileConfig {
    /// The path of the file or block device.
    pub path: PathBuf,
    /// The options with which the drive is used.
    pub options: FileOptions,
    /// Whether a file or block device that Fulgurite did not create may be overwritten.
    pub destroy_contents: bool,
    /// Whether the run uses the store in the file and does not overwrite it.
    pub keeps_store: bool,
    /// The number of pages that the run needs; `None` if a size was given, or if the file has enough pages.
    pub needed_pages: Option<u64>,
}

/// The system interface for commands to a file or block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Submits many commands at once through io_uring.
    Uring,
    /// Executes one command at a time through system calls.
    Psync,
}

impl Choice for Engine {
    const NAMES: &'static [(&'static str, Engine)] = &[("uring", Engine::Uring), ("psync", Engine::Psync)];
}

/// The options of `file:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// The size of the drive in bytes; `None` for the size of the file, or the size that the run needs.
    pub size: Option<u64>,
    /// The size of a page in bytes.
    pub page_bytes: u64,
    /// The maximum number of commands in flight.
    pub queue_depth: u32,
    /// The system interface for commands.
    pub engine: Engine,
    /// Whether to poll for completions without sleeping.
    pub poll: bool,
}

impl Default for FileOptions {
    fn default() -> FileOptions {
        let usual = fulgurite_uring::DriveOptions::default();
        FileOptions {
            size: None,
            page_bytes: u64::from(usual.page_bytes),
            queue_depth: usual.queue_depth,
            engine: Engine::Uring,
            poll: false,
        }
    }
}

const SIZE_OR_ITS_OWN: Form<Option<u64>> = Form {
    written: "SIZE",
    parse: |text| units::parse_size(text).map(Some),
    show: |size| size.map_or_else(|| "its own".to_owned(), units::format_size),
};

impl Declared for FileOptions {
    const OPTIONS: &'static [Opt<FileOptions>] = &[
        opt!("size", size, SIZE_OR_ITS_OWN, "bytes of a new file; by default as many as the run needs"),
        opt!("page", page_bytes, SIZE, 512 => 1 << 20, "bytes in a page, a power of two"),
        opt!("queue_depth", queue_depth, COUNT, 1 => 32_768, "commands in flight at once"),
        opt!("engine", engine, Form::<Engine>::choice("uring|psync"), "how commands reach the drive"),
        opt!("poll", poll, YES_NO, "look for completions without sleeping"),
    ];
}

/// A log-structured layer above a drive.
#[derive(Clone, Debug)]
pub struct LayerConfig {
    /// The label of the layer in tables, which is the text that the user typed.
    pub label: String,
    /// The configuration of the layer.
    pub log: LogConfig,
}

/// The name of the ideal drive.
pub(crate) const MEM: &str = "mem";

/// The name for no drive and no layer.
pub(crate) const NO_DEVICE: &str = "none";

/// The name of the log-structured layer.
pub(crate) const LOG: &str = "log";

/// The prefix of a real drive's name.
pub(crate) const FILE: &str = "file";

/// The form of a real drive's name.
pub(crate) const REAL: &str = "file:PATH";

/// Returns the error for an unknown device.
fn unknown(name: &str) -> SpecError {
    let names: Vec<&str> = preset::registry().names().chain([MEM, NO_DEVICE, REAL]).collect();
    // A name with a slash is a path, even if no file is there.
    if Path::new(name).exists() || name.contains('/') {
        return SpecError::new(format!(
            "unknown device `{name}`; did you mean `{FILE}:{name}`? (known: {})",
            names.join(" ")
        ));
    }
    SpecError::unknown("device", name, &names)
}

/// The end of the name of a file that describes a drive, as `calibrate` writes it.
const TWIN: &str = ".toml";

/// Returns the drive that the file at `path` describes, changed by `options`.
fn twin(path: &Path, options: &str) -> Result<DriveConfig, StackError> {
    let refused = |why: String| {
        StackError::request(format!(
            "device {}: {why}; accepted: a file as calibrate writes it, with device = \"preset:option=value\"",
            path.display()
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(obstacle(path, &error)))?;
    let file: toml::Table =
        text.parse().map_err(|error: toml::de::Error| refused(error.message().to_owned()))?;
    let device = file.get("device").and_then(toml::Value::as_str);
    let device = device.ok_or_else(|| refused("it names no device".to_owned()))?;
    let spec = Spec::parse(device)?;
    let preset = preset::by_name(spec.name())?;
    let mut config = preset::configure(spec)?;
    if !options.is_empty() {
        config = config.changed_by(Spec::parse(&format!("{}:{options}", preset.name))?)?;
    }
    Ok(DriveConfig::Simulated { preset: preset.name, config: Box::new(config) })
}

/// Returns the bounds that the file at `path` states for its drive; `None` if it states none.
fn bounds(path: &Path) -> Option<Bounds> {
    let file: toml::Table = std::fs::read_to_string(path).ok()?.parse().ok()?;
    let stated = file.get("bounds")?;
    let pair = |name: &str| -> Option<[f64; 2]> {
        let pair = stated.get(name)?.as_array()?.iter().map(toml::Value::as_float);
        pair.collect::<Option<Vec<f64>>>()?.try_into().ok()
    };
    let [read_p50, read_p99, write_p50, write_p99] = Bounds::NAMES.map(pair);
    Some(Bounds::new([read_p50?, read_p99?, write_p50?, write_p99?]))
}

impl DeviceConfig {
    /// Returns how far a measured drive is from this simulated one; `None` if nobody has compared them.
    pub fn bounds(&self) -> Option<Bounds> {
        let DriveConfig::Simulated { preset, .. } = &self.drive else { return None };
        let name = self.label.split(':').next().unwrap_or_default();
        if name.ends_with(TWIN) { bounds(Path::new(name)) } else { preset::by_name(preset).ok()?.bounds }
    }

    /// Parses the device that `text` names.
    pub fn parse(text: &str) -> Result<DeviceConfig, StackError> {
        let label = text.to_owned();
        if let Some(drive) = text.strip_prefix("file:") {
            return Ok(DeviceConfig { label, drive: DriveConfig::File(FileConfig::parse(drive)?) });
        }
        let name = text.split(':').next().unwrap_or(text);
        if name.ends_with(TWIN) {
            let options = text[name.len()..].trim_start_matches(':');
            let drive = twin(Path::new(name), options)?;
            return Ok(DeviceConfig { label, drive });
        }
        let is_known = [NO_DEVICE, MEM].contains(&name) || preset::by_name(name).is_ok();
        // The text after an unknown name may be part of a path whose `file:` is missing, so an error in its
        // options is not reported.
        let mut spec = Spec::parse(text)
            .map_err(|error| if is_known || name.is_empty() { error } else { unknown(name) })?;
        let drive = match spec.name() {
            NO_DEVICE => DriveConfig::None,
            MEM => {
                let mem = MemConfig::default().with_options(&mut spec)?;
                if !mem.page_bytes.is_power_of_two() {
                    return Err(StackError::request(
                        "page of mem: not a power of two; accepted: 512B to 1MiB",
                    ));
                }
                DriveConfig::Mem(mem)
            }
            name => {
                let preset = preset::by_name(name).map_err(|_| unknown(name))?;
                let config = Box::new(preset::configure(spec)?);
                return Ok(DeviceConfig {
                    label,
                    drive: DriveConfig::Simulated { preset: preset.name, config },
                });
            }
        };
        spec.finish()?;
        Ok(DeviceConfig { label, drive })
    }

    /// Creates a translation layer without a drive.
    pub fn translation(ftl: FtlConfig, page_bytes: u32) -> DeviceConfig {
        let labels = [ftl.collect.placement.to_string(), ftl.collect.victim.to_string()];
        let drive = DriveConfig::Translation(TranslationConfig { ftl, page_bytes, labels });
        DeviceConfig { label: NO_DEVICE.to_owned(), drive }
    }

    /// Returns the device in the identity of a run: its name with the options that differ from their
    /// defaults.
    pub fn canonical(&self) -> String {
        match &self.drive {
            DriveConfig::None => NO_DEVICE.to_owned(),
            DriveConfig::Translation(_) => "translation".to_owned(),
            DriveConfig::Mem(mem) => option::with_name(MEM, &mem.options_beside(&MemConfig::default())),
            DriveConfig::File(file) => {
                let options = file.options.options_beside(&FileOptions::default());
                format!("file:{},{options}", file.path.display())
            }
            DriveConfig::Simulated { preset, config } => preset::by_name(preset)
                .map_or_else(|_| format!("{config:?}"), |preset| preset.canonical(config)),
        }
    }

    /// Returns the configuration of a simulated drive; `None` for other devices.
    pub fn simulated(&self) -> Option<&SsdConfig> {
        match &self.drive {
            DriveConfig::Simulated { config, .. } => Some(config),
            _ => None,
        }
    }

    /// Returns a larger device to suggest if `times` as much space is needed, with all other options that were
    /// typed. The suggestion is slightly larger than that, because a layer or a log needs space too.
    pub fn larger(&self, times: f64) -> String {
        let grown = |now: u64| (now as f64 * times * 1.02).ceil() as u64 + 1;
        match &self.drive {
            DriveConfig::Mem(mem) => self.label_with("pages", &grown(mem.pages).to_string()),
            DriveConfig::File(_) => self.label_with("size", "SIZE"),
            DriveConfig::Simulated { config, .. } => {
                self.label_with("blocks", &grown(u64::from(config.blocks)).to_string())
            }
            _ => "p4510".to_owned(),
        }
    }

    /// Returns the label with the option `key` set to `value`.
    fn label_with(&self, key: &str, value: &str) -> String {
        let (name, options) = self.label.split_once(':').unwrap_or((&self.label, ""));
        let is_other = |option: &&str| !option.is_empty() && option.split('=').next() != Some(key);
        let mut options: Vec<&str> = options.split(',').filter(is_other).collect();
        let option = format!("{key}={value}");
        options.push(&option);
        format!("{name}:{}", options.join(","))
    }

    /// Whether there is no drive, so that misses are counted without time.
    pub fn is_none(&self) -> bool {
        matches!(self.drive, DriveConfig::None)
    }

    /// Whether the device is a real drive, whose clock is the wall clock. No other run may use the drive
    /// meanwhile.
    pub fn is_real(&self) -> bool {
        matches!(self.drive, DriveConfig::File(_))
    }

    /// Returns the size of a device page in bytes.
    pub fn page_bytes(&self) -> u32 {
        // Parsing refuses pages above 1 MiB, so no typed size is truncated.
        let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        match &self.drive {
            // Without a drive, this is the smallest page size, which divides every page size of a pool.
            DriveConfig::None => 512,
            DriveConfig::Translation(translation) => translation.page_bytes,
            DriveConfig::Mem(mem) => narrow(mem.page_bytes),
            DriveConfig::File(file) => narrow(file.options.page_bytes),
            DriveConfig::Simulated { config, .. } => config.page_bytes,
        }
    }

    /// Returns the maximum number of commands in flight.
    pub fn queue_depth(&self) -> u32 {
        match &self.drive {
            DriveConfig::None | DriveConfig::Translation(_) => 0,
            DriveConfig::Mem(_) => MEM_QUEUE_DEPTH,
            DriveConfig::File(file) => file.options.queue_depth,
            DriveConfig::Simulated { config, .. } => config.queue_depth,
        }
    }

    /// Returns the number of pages of the device itself, without the layer above it.
    pub fn pages(&self) -> u64 {
        match &self.drive {
            DriveConfig::None => u64::MAX,
            DriveConfig::Translation(translation) => u64::from(translation.ftl.logical_pages),
            DriveConfig::Mem(mem) => mem.pages,
            DriveConfig::File(file) => file.pages(),
            DriveConfig::Simulated { config, .. } => config.logical_pages(),
        }
    }

    /// Returns the preset of a device that is a preset without changes; `None` for other devices.
    pub(crate) fn unchanged_preset(&self) -> Option<&'static Preset> {
        match &self.drive {
            DriveConfig::Simulated { preset, .. } if *preset == self.label => preset::by_name(preset).ok(),
            _ => None,
        }
    }

    /// Returns the published figures for requests of `page_bytes`, if the device is a preset without changes.
    pub fn target(&self, page_bytes: u32) -> Option<Target> {
        let targets = self.unchanged_preset()?.targets;
        targets.iter().copied().find(|target| target.page_bytes == page_bytes)
    }
}

/// Returns the path in the text of a workload or a device: that of a trace, or of a drive
/// (`file:PATH,size=1GiB`). For the text of a generator or a preset, no file exists at the returned path.
pub fn named_file(text: &str) -> &Path {
    Path::new(text.strip_prefix("file:").map_or(text, |drive| drive.split(',').next().unwrap_or(drive)))
}

/// Whether a text has the form of a file's option.
fn is_option(text: &str) -> bool {
    let key = text.split_once('=').map(|(key, _)| key);
    FileOptions::OPTIONS.iter().any(|option| key == Some(option.key))
}

/// The queue depth of the ideal drive, more than any run uses.
pub(crate) const MEM_QUEUE_DEPTH: u32 = 1 << 16;

/// The default size of a new file.
const NEW_FILE_BYTES: u64 = 1 << 30;

impl FileConfig {
    /// Parses a path with options, the text after `file:`.
    fn parse(text: &str) -> Result<FileConfig, StackError> {
        let (path, options) = text.split_once(',').unwrap_or((text, ""));
        if path.is_empty() {
            return Err(StackError::request(
                "device file: has no path; write file:PATH or file:PATH,size=1GiB",
            ));
        }
        if is_standard(Path::new(path)) {
            return Err(StackError::request(
                "device file:- is standard input or output, which cannot serve as a drive; accepted: a file or \
                    block device",
            ));
        }
        // Options of presets come after a colon. A new file whose name ends with a colon and an option is
        // probably a mistake, so refuse it.
        let option = path.rsplit_once(':').filter(|(_, option)| is_option(option));
        if let Some((before, option)) = option.filter(|_| !Path::new(path).exists()) {
            return Err(StackError::request(format!(
                "device file:{text}: options of a file come after a comma; write file:{before},{option}{}",
                &text[path.len()..]
            )));
        }
        let mut spec = Spec::parse(&option::with_name(FILE, options))?;
        let options = FileOptions::default().with_options(&mut spec)?;
        spec.finish()?;
        Ok(FileConfig { path: PathBuf::from(path), options, ..FileConfig::default() })
    }

    /// Returns the number of pages that the drive has, or will have when it is created.
    pub(crate) fn pages(&self) -> u64 {
        let known = fulgurite_uring::check(&self.path, &self.uring_options(None)).ok();
        known.unwrap_or(NEW_FILE_BYTES / self.options.page_bytes)
    }

    /// Returns the options for the crate `uring`; `pages` is the number of pages if none was given.
    pub(crate) fn uring_options(&self, pages: Option<u64>) -> fulgurite_uring::DriveOptions {
        let FileOptions { size, page_bytes, queue_depth, poll, .. } = self.options;
        fulgurite_uring::DriveOptions {
            page_bytes: u32::try_from(page_bytes).unwrap_or(u32::MAX),
            pages: size.map(|size| size / page_bytes).or(self.needed_pages).or(pages),
            queue_depth,
            poll,
            many_threads: false,
            destroy_contents: self.destroy_contents,
            sparse: false,
        }
    }

    /// Refuses a file that holds a store, unless the run may destroy the store or uses it.
    pub(crate) fn check_store(&self) -> Result<(), StackError> {
        if self.destroy_contents || self.keeps_store || !holds_store(&self.path) {
            return Ok(());
        }
        Err(StackError::request(format!(
            "{} holds a store; its contents are left alone unless they may be destroyed (--destroy-contents), or \
                bench is to go on with them (--reuse)",
            self.path.display()
        )))
    }

    /// Returns the number of bytes that must be written to create or extend the file.
    pub(crate) fn missing_bytes(&self) -> u64 {
        let bytes = |pages: u64| pages.saturating_mul(self.options.page_bytes);
        let plain = FileConfig { needed_pages: None, ..self.clone() };
        let plain = FileConfig { options: FileOptions { size: None, ..plain.options }, ..plain };
        let has = fulgurite_uring::check(&self.path, &plain.uring_options(None)).unwrap_or(0);
        bytes(self.pages()).saturating_sub(bytes(has))
    }

    /// Makes the file large enough for `pages`, if no size was given.
    pub(crate) fn make_room_for(&mut self, pages: u64) {
        let has = fulgurite_uring::check(&self.path, &self.uring_options(None));
        if self.options.size.is_none() && has.map_or(true, |has| has < pages) {
            self.needed_pages = Some(pages);
        }
    }
}

impl LayerConfig {
    /// Parses the layer that `text` names; `None` means no layer.
    pub fn parse(text: &str) -> Result<Option<LayerConfig>, SpecError> {
        let spec = Spec::parse(text)?;
        match spec.name() {
            NO_DEVICE => spec.finish().map(|()| None),
            LOG => Ok(Some(LayerConfig { label: text.to_owned(), log: LogConfig::from_spec(spec)? })),
            unknown => Err(SpecError::unknown("layer", unknown, &[NO_DEVICE, LOG])),
        }
    }
}

//! `lookalike tune`.

mod args;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use lookalike::Recipe;
use lookalike::plan::{EditUnit, MatchSettings};
use lookalike::quality::evaluate::{SweptParameter, TuningGoal};
use lookalike_batch::run::{self, RemovedShare, SettingPrice, TuneSummary, TunedSummary};
use lookalike_io::sink::{ByteWriter, OutputTarget};
use lookalike_options::match_options::MatchOptions;
use lookalike_system::quote_for_shell;
use serde_json::json;

pub(crate) use self::args::TuneArgs;
use self::args::TuneRun;
use super::eval::report::{FIGURE_WIDTH, axis_heading, describe_labels, format_cut, format_figure};
use super::eval::{evaluated_method_name, warn_of_ids};
use crate::CommandOutcome;
use crate::language::engine_phrases::translate_phrase;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{
    OutputPrinter, ReplacedFiles, TextTone, escape_control, format_count, format_duration,
    format_plural, pad_before, pad_to_width,
};
use crate::progress::ProgressReporter;

/// Number of settings shown; the JSON has all of them.
const SHOWN_SETTINGS: usize = 8;

/// Smallest meaningful number of pairs of a kind in a half. With fewer, the 95 % interval of a rate near 0.9
/// is wider than ±0.12.
const FEWEST_PAIRS_OF_KIND: u64 = 25;

/// Width of the column of setting names.
const NAME_WIDTH: usize = 44;

pub(crate) fn run_tune(args: &TuneArgs) -> Result<CommandOutcome> {
    let printer = OutputPrinter::new(args.quiet);
    let TuneRun { inputs, settings } = TuneRun::new(args)?;
    let mut done = ProgressReporter::watch_run(printer, true, "", |reporter| {
        run::run_tuning(&inputs, &settings, reporter)
    })?;
    let replaced = ReplacedFiles::find_existing(args.output.as_deref());
    if let Some(place) = &args.output {
        done.recipe = as_seen_from(place, done.recipe);
    }
    let recipe = render_recipe(&done, args.output.as_deref());
    if let Some(place) = &args.output {
        let mut writer = ByteWriter::create_output(&OutputTarget::Path(place.clone()))?;
        writer.write_bytes(recipe.as_bytes())?;
        writer.finish_output()?;
    }
    let text = if args.json {
        let mut value = serde_json::to_value(&done)?;
        value["recipe"] = json!(done.recipe.to_toml());
        value["command"] = json!(usage_command(&done, args.output.as_deref()));
        format!("{value}\n")
    } else {
        render_report(&done, args.output.as_deref(), &recipe, &printer)
    };
    warn_of_ids(&done.labelled, printer);
    warn_of_few(&done, printer);
    for warning in &done.warnings {
        printer.print_warning(translate_phrase(warning));
    }
    warn_of_missed_goal(&done, settings.options.goal, printer);
    replaced.report_replaced(&printer);
    printer.write_data(&text)?;
    printer.print_note(&format!("{}\n", format_duration(done.seconds)));
    Ok(CommandOutcome::Done)
}

/// Warns that there are too few pairs for a reliable choice.
fn warn_of_few(done: &TuneSummary, printer: OutputPrinter) {
    let fewest = done.halves.iter().flatten().min().copied().unwrap_or(0);
    if fewest < FEWEST_PAIRS_OF_KIND {
        let [[similar, different], _] = done.halves;
        printer.print_warning(messages::few_pairs_for_choosing(
            &format_count(similar),
            &format_count(different),
        ));
    }
}

/// Warns that the goal was reached only on the half by which the setting was chosen.
fn warn_of_missed_goal(done: &TuneSummary, goal: TuningGoal, printer: OutputPrinter) {
    let precision = done.held_back.metrics.precision;
    if let (TuningGoal::Precision(least), Some(value)) = (goal, precision.value)
        && value < least
    {
        printer.print_warning(messages::goal_is_missed(
            &format_figure(precision),
            &done.goal,
        ));
    }
}

/// Rewrites the file names of a recipe relative to the place where the recipe is written.
fn as_seen_from(place: &Path, recipe: Recipe) -> Recipe {
    // Only an empty path has no absolute form.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let place = absolute(place);
    recipe.with_file_names(|_, name| {
        let file = absolute(Path::new(name));
        let beside = place
            .parent()
            .and_then(|directory| file.strip_prefix(directory).ok());
        beside.unwrap_or(&file).display().to_string()
    })
}

/// Returns the recipe as a file, with its origin and the command that uses it as comments.
fn render_recipe(done: &TuneSummary, place: Option<&Path>) -> String {
    let metrics = &done.held_back.metrics;
    format!(
        "# lookalike tune: {}, {} of them similar; goal: {}\n\
         # held back: precision {}, recall {}, F1 {}\n\
         # {}\n# id {}\n{}",
        format_plural(
            done.labelled.similar + done.labelled.different,
            "labelled pair",
            "labelled pairs"
        ),
        format_count(done.labelled.similar),
        done.goal,
        format_figure(metrics.precision),
        format_figure(metrics.recall),
        format_figure(metrics.f1),
        usage_command(done, place),
        done.recipe.recipe_id(),
        done.recipe.to_toml()
    )
}

/// Returns the command that uses the setting.
fn usage_command(done: &TuneSummary, place: Option<&Path>) -> String {
    let recipe = match place {
        Some(place) => quote_for_shell(&place.display().to_string()),
        None => "RECIPE.toml".to_owned(),
    };
    format!(
        "lookalike dedup IN -o OUT --recipe {recipe}{}",
        matching_options(&done.matching)
    )
}

/// Returns the options of a setting that differ from the defaults, and its threshold or distance.
fn matching_options(matching: &MatchSettings) -> String {
    let usual = MatchSettings::default();
    let mut text = String::new();
    if matching.method != usual.method {
        let _ = write!(text, " --method {}", matching.method.name());
    }
    if matching.measure != usual.measure {
        let _ = write!(text, " --verify {}", matching.measure.name());
    }
    let in_words = matching.unit == EditUnit::Words;
    if in_words && matching.measure.sequence_measure().is_some() {
        text.push_str(" --unit words");
    }
    let options = MatchOptions::from_settings(matching);
    if let Some(threshold) = options.threshold {
        let _ = write!(text, " --threshold {}", threshold.get());
    } else if let Some(distance) = options.distance {
        let _ = write!(text, " --distance {distance}");
    }
    text
}

fn render_report(
    done: &TuneSummary,
    place: Option<&Path>,
    recipe: &str,
    printer: &OutputPrinter,
) -> String {
    let mut text = describe_labels(&done.labelled);
    let [[similar, different], [held, held_different]] = done.halves;
    let [similar, different, held, held_different] =
        [similar, different, held, held_different].map(format_count);
    let halves = messages::halves(&similar, &different, &held, &held_different);
    let tried = messages::settings_tried(done.settings.len(), &done.goal.to_string());
    let _ = writeln!(text, "{halves}\n{tried}\n");
    append_contenders(&mut text, done, printer);
    tried_on(&mut text, done);
    append_reason(&mut text, done);
    append_held_back(&mut text, done, printer);
    let _ = writeln!(text, "\n{}", usage_command(done, place));
    if place.is_none() {
        let _ = write!(text, "\n{recipe}");
    }
    text.lines()
        .flat_map(|line| [line.trim_end(), "\n"])
        .collect()
}

/// Appends the best settings, by the half used for the choice.
fn append_contenders(text: &mut String, done: &TuneSummary, printer: &OutputPrinter) {
    let name = pad_to_width(&messages::half_for_choosing(), NAME_WIDTH);
    let figures = [messages::precision(), messages::recall()];
    let [precision, recall] = figures.map(|figure| pad_before(&figure, 9));
    let removes = pad_before(&messages::figure_removes(), 9);
    let heading = format!(
        "  {name} {:<16} {precision}  {recall}  {:>9}  {removes}",
        "", "F1"
    );
    let _ = writeln!(
        text,
        "{}",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
    let mut order: Vec<usize> = (0..done.settings.len()).collect();
    let value = |at: &usize| done.settings[*at].value.unwrap_or(-1.0);
    order.sort_by(|a, b| value(b).total_cmp(&value(a)));
    let rest = order.split_off(SHOWN_SETTINGS.min(order.len()));
    order.extend(rest.into_iter().filter(|&at| at == done.chosen));
    for at in order {
        let setting = &done.settings[at];
        let value =
            |value: Option<f64>| value.map_or("-".to_owned(), |figure| format!("{figure:.3}"));
        let _ = writeln!(
            text,
            "{} {:<NAME_WIDTH$} {} {:>9}  {:>9}  {:>9}  {:>9}{}",
            if at == done.chosen { '*' } else { ' ' },
            escape_control(&setting_name(setting)),
            pad_to_width(&describe_cut(setting), 16),
            value(setting.counts.precision()),
            value(setting.counts.recall()),
            value(setting.counts.f1_score()),
            removed(setting.removed),
            if at == done.chosen {
                messages::chosen_mark()
            } else {
                String::new()
            }
        );
    }
}

/// The share of documents that a setting removes.
fn removed(removed: Option<RemovedShare>) -> String {
    removed.map_or("-".to_owned(), |estimate| {
        format!("{:.1} %", estimate.share * 100.0)
    })
}

/// The documents of which settings remove a share.
fn tried_on(text: &mut String, done: &TuneSummary) {
    let tried = &done.tried_on;
    let noun = if tried.is_corpus {
        CountedNoun::CorpusDocument
    } else {
        CountedNoun::LabelledText
    };
    let documents = NounCount(tried.total, noun);
    let sentence = if tried.documents == tried.total {
        messages::removes_of_all(documents)
    } else {
        messages::removes_of_sample(&format_count(tried.documents), documents)
    };
    let _ = writeln!(text, "{sentence}");
}

fn setting_name(setting: &TunedSummary) -> String {
    evaluated_method_name(
        &setting.recipe,
        setting.method,
        setting.measure,
        setting.sweep,
        setting.unit,
    )
}

fn describe_cut(setting: &TunedSummary) -> String {
    match (setting.sweep, setting.cut) {
        (SweptParameter::Nothing, _) | (_, None) => String::new(),
        (sweep, Some(value)) => format!("{} {}", axis_heading(sweep), format_cut(value, sweep)),
    }
}

/// Appends the reason for the choice.
fn append_reason(text: &mut String, done: &TuneSummary) {
    let as_good = done
        .settings
        .iter()
        .filter(|setting| setting.is_as_good)
        .count();
    let settings = NounCount(as_good as u64, CountedNoun::Setting);
    let reason = if done.resamples == 0 {
        messages::best_without_resamples()
    } else if done.chosen != done.best {
        messages::as_good_as_best(settings)
    } else if as_good > 1 {
        messages::best_of_as_good(settings)
    } else {
        messages::best_of_all()
    };
    let _ = writeln!(text, "{reason}\n");
}

/// Appends the result of the chosen setting on the half held back, beside others.
fn append_held_back(text: &mut String, done: &TuneSummary, printer: &OutputPrinter) {
    let names = [messages::precision(), messages::recall()];
    let [precision, recall] = names.map(|name| pad_to_width(&name, FIGURE_WIDTH));
    let [held, sketch] =
        [messages::held_back(), messages::sketch()].map(|name| pad_to_width(&name, 9));
    let heading = format!(
        "  {held} {precision} {recall} {:<FIGURE_WIDTH$} {:>6}  {sketch}  {}",
        "F1",
        "MB/s",
        messages::figure_removes()
    );
    let _ = writeln!(
        text,
        "{}",
        printer.paint_for_output(TextTone::Heading, &heading)
    );
    let runner_up = done.runner_up.zip(done.runner_up_held_back);
    let removed_by = |at: usize| done.settings[at].removed;
    append_price(
        text,
        &messages::chosen(),
        &done.held_back,
        removed_by(done.chosen),
    );
    if let Some((at, held)) = &runner_up {
        append_price(text, &messages::runner_up(), held, removed_by(*at));
    }
    append_price(
        text,
        &messages::untuned(),
        &done.untuned_held_back,
        done.untuned_removed,
    );
    if let Some((at, _)) = runner_up {
        let setting = &done.settings[at];
        let name = setting_name(setting);
        let line = messages::runner_up_is(&escape_control(&name), &describe_cut(setting));
        let _ = writeln!(text, "{line}");
    }
}

fn append_price(
    text: &mut String,
    name: &str,
    price: &SettingPrice,
    removes: Option<RemovedShare>,
) {
    let metrics = &price.metrics;
    let _ = writeln!(
        text,
        "  {} {:<FIGURE_WIDTH$} {:<FIGURE_WIDTH$} {:<FIGURE_WIDTH$} {:>6.0}  {:<9}  {}",
        pad_to_width(name, 9),
        format_figure(metrics.precision),
        format_figure(metrics.recall),
        format_figure(metrics.f1),
        price.megabytes_per_second,
        NounCount(price.bytes_per_sketch as u64, CountedNoun::Byte).to_string(),
        removed(removes)
    );
}

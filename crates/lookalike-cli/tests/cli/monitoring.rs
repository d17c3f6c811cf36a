//! Dashboard, alerts and containers in `deploy/`, against the metrics of a real service.
//!
//! Prometheus itself (Debian's package `prometheus`) parses and answers every query where it is installed. Names and
//! labels are checked without it.

use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::service::{Connection, PATIENCE, Service, TLS_OPTIONS, document, write_certificate};
use crate::support::Place;

fn deployed(file: &str) -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
    PathBuf::from(root).join(file)
}

fn read_deployed(file: &str) -> String {
    fs::read_to_string(deployed(file)).unwrap()
}

/// Returns the values after a key, one a line, of a YAML file of this project.
fn values_after<'a>(yaml: &'a str, key: &str) -> Vec<&'a str> {
    let lines = yaml
        .lines()
        .map(|line| line.trim().trim_start_matches("- "));
    lines.filter_map(|line| line.strip_prefix(key)).collect()
}

/// A query of the dashboard: its panel, and its expression as Grafana sends it when everything is selected.
struct DashboardQuery {
    panel: String,
    expression: String,
}

/// Returns the queries of all panels, variables and annotations of the dashboard.
fn dashboard_queries() -> Vec<DashboardQuery> {
    let dashboard: Value = serde_json::from_str(&read_deployed("grafana/dashboard.json")).unwrap();
    let mut queries = Vec::new();
    let mut add = |panel: &Value, expression: &Value| {
        let expression = expression.as_str().unwrap();
        // A variable asks for the values of a label of some series.
        let series = expression.strip_prefix("label_values(");
        let series = series.and_then(|series| series.rsplit_once(','));
        let expression = series.map_or(expression, |(series, _)| series);
        let selected = expression
            .replace("$__rate_interval", "1m")
            .replace("$instance", ".*")
            .replace("$collection", ".*");
        assert!(!selected.contains('$'), "{panel}: {selected}");
        queries.push(DashboardQuery {
            panel: panel.as_str().unwrap().to_owned(),
            expression: selected,
        });
    };
    let list = |value: &Value| value.as_array().unwrap().clone();
    for panel in list(&dashboard["panels"]) {
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        for target in targets {
            add(&panel["title"], &target["expr"]);
        }
    }
    for variable in list(&dashboard["templating"]["list"]) {
        if variable["type"] == "query" {
            add(&variable["name"], &variable["definition"]);
        }
    }
    for annotation in list(&dashboard["annotations"]["list"]) {
        add(&annotation["name"], &annotation["expr"]);
    }
    queries
}

/// Starts a service whose collection has documents, queries and a snapshot, so that every series has a sample.
fn start_busy_service(place: &Place) -> Service {
    // A replica has the metrics of the shared log, too.
    let log = place.path("log");
    let options = if cfg!(feature = "object-store") {
        format!(
            "--snapshots copies --shared-log file://{} --replica a",
            log.display()
        )
    } else {
        "--snapshots copies".to_owned()
    };
    let service = Service::start(place, &options);
    service.make("posts", json!({ "window": "2d" }));
    keep_busy(&service, 0);
    let made = service.post("/v1/collections/posts/snapshot", &json!({ "name": "one" }));
    assert_eq!(made.status, 201, "{}", made.text());
    service
}

/// Starts a service with a certificate, which has the metrics that another one lacks.
fn start_encrypted_service(place: &Place) -> (Service, String) {
    let certificate = write_certificate(place, 2090);
    let service = Service::launch(place, TLS_OPTIONS);
    let metrics = service.try_get_encrypted(&certificate, "/metrics").unwrap();
    (service, metrics)
}

/// Returns the metrics of a busy service and of one with a certificate.
fn collect_metrics() -> String {
    let (place, encrypted) = (Place::new(), Place::new());
    let metrics = start_busy_service(&place).get("/metrics").text();
    metrics + &start_encrypted_service(&encrypted).1
}

/// Inserts a document and a repetition of it, and asks for its matches.
fn keep_busy(service: &Service, round: u64) {
    let text = format!("the keeper of harbour {round} lights lamp {round} before night {round}");
    for id in ["first", "repeated"] {
        let id = format!("{id}-{round}");
        let reply = service.post("/v1/collections/posts/documents", &document(&id, &text));
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let reply = service.post("/v1/collections/posts/query", &json!({ "text": text }));
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// A metric that an expression names, with the labels that it selects.
struct Selector<'a> {
    metric: &'a str,
    /// Name, operator and value.
    labels: Vec<(&'a str, &'a str, &'a str)>,
}

/// Returns the metrics of the service that an expression names.
fn find_selectors(expression: &str) -> Vec<Selector<'_>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut selectors = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find(is_name) {
        let end = rest[at..]
            .find(|c| !is_name(c))
            .map_or(rest.len(), |end| at + end);
        let (word, after) = (&rest[at..end], &rest[end..]);
        rest = after;
        if word.starts_with("lookalike_") || word.starts_with("process_") {
            let inner = after.strip_prefix('{').and_then(|it| it.split_once('}'));
            let labels = inner.map_or("", |(labels, _)| labels);
            selectors.push(Selector {
                metric: word,
                labels: split_labels(labels),
            });
        }
    }
    selectors
}

fn split_labels(labels: &str) -> Vec<(&str, &str, &str)> {
    let matchers = labels.split("\",").filter(|it| !it.is_empty());
    let split = matchers.map(|matcher| {
        let (name, value) = matcher.split_once('"').unwrap();
        let end = name.find(['=', '!']).unwrap();
        (&name[..end], &name[end..], value.trim_end_matches('"'))
    });
    split.collect()
}

impl Selector<'_> {
    /// Checks that the page of metrics has a sample with all labels of the selector. The labels `job` and
    /// `instance` are Prometheus' own.
    fn check(&self, metrics: &str, expression: &str) {
        let samples = metrics.lines().filter(|line| {
            let rest = line.strip_prefix(self.metric);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        let has_labels = |sample: &&str| {
            let own = self.labels.iter();
            own.filter(|(name, ..)| !["job", "instance"].contains(name))
                .all(|(name, operator, value)| match *operator {
                    "=" => sample.contains(&format!("{name}=\"{value}\"")),
                    "=~" if *value != ".*" => value
                        .split('|')
                        .any(|value| sample.contains(&format!("{name}=\"{value}\""))),
                    _ => sample.contains(&format!("{name}=\"")),
                })
        };
        let found = samples.filter(has_labels).count();
        assert!(found > 0, "no sample of {} for {expression}", self.metric);
    }
}

/// The alerts are those of the page about monitoring. Every metric and label of an alert or of the dashboard exists.
#[test]
fn alerts_and_dashboard_name_existing_series() {
    let rules = read_deployed("alerts.yml");
    let page = read_deployed("../docs/service/monitoring.md");
    let alerts = values_after(&rules, "expr: ");
    assert!(alerts.len() > 10, "{alerts:?}");
    for name in values_after(&rules, "alert: ") {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
    let queries = dashboard_queries();
    assert!(queries.len() > 30, "{}", queries.len());
    let expressions = queries.iter().map(|query| &query.expression[..]);
    let metrics = collect_metrics();
    for expression in expressions.chain(alerts) {
        for selector in find_selectors(expression) {
            selector.check(&metrics, expression);
        }
    }
    let missing = find_selectors("sum(rate(lookalike_documents_total{result=\"kep\"}[1m]))");
    let checked = std::panic::catch_unwind(|| missing[0].check(&metrics, "a wrong label"));
    assert!(checked.is_err());
}

/// Every family of metrics is on the dashboard.
#[test]
fn dashboard_shows_every_metric() {
    let queries = dashboard_queries();
    let metrics = collect_metrics();
    let families = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    // Of open files the number is shown, not the limit.
    let families = families.map(|line| line.split(' ').next().unwrap());
    for family in families.filter(|family| *family != "process_max_fds") {
        let shown = queries
            .iter()
            .any(|query| query.expression.contains(family));
        assert!(shown, "{family}");
    }
}

fn is_installed(program: &str) -> bool {
    let asked = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

#[expect(clippy::print_stderr, reason = "a test says that it is skipped")]
fn skip(program: &str) {
    eprintln!("skipped: {program} (Debian's package prometheus) is not installed");
}

/// Every alert has a case in which it fires and one in which it does not, and both are as stated.
#[test]
fn alerts_fire_when_they_should() {
    let (rules, tests) = (
        read_deployed("alerts.yml"),
        read_deployed("alerts_test.yml"),
    );
    for alert in values_after(&rules, "alert: ") {
        let silent = format!("alertname: {alert}, exp_alerts: []");
        let fires = format!("alertname: {alert}\n        exp_alerts:\n          - exp_labels:");
        assert!(tests.contains(&silent) && tests.contains(&fires), "{alert}");
    }
    if !is_installed("promtool") {
        return skip("promtool");
    }
    for arguments in [
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts_test.yml"],
    ] {
        let ran = Command::new("promtool")
            .args(arguments)
            .current_dir(deployed(""))
            .output()
            .unwrap();
        let said = [ran.stdout, ran.stderr].concat();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}

/// A Prometheus that scrapes a service; killed on drop.
struct Prometheus {
    process: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// Starts it with two targets, of which the second one has a certificate.
    fn start(place: &Place, service: &Service, encrypted: &Service) -> Self {
        let rules = deployed("alerts.yml").canonicalize().unwrap();
        let configuration = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: [{}]\n\
             scrape_configs:\n- job_name: lookalike\n  static_configs: [{{targets: ['{}']}}]\n\
             - job_name: encrypted\n  scheme: https\n  tls_config: {{insecure_skip_verify: true}}\n  \
             static_configs: [{{targets: ['{}']}}]\n",
            rules.display(),
            service.address,
            encrypted.address
        );
        place.write("prometheus.yml", configuration);
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let process = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=series"])
            .arg(format!("--web.listen-address={address}"))
            .current_dir(place.path(""))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self {
            process: process.unwrap(),
            address,
        }
    }

    /// Returns the series of an expression, or `None` while Prometheus does not answer.
    fn query(&self, expression: &str) -> Option<Vec<Value>> {
        let escaped: String = expression
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect();
        let answer = self.get(&format!("/api/v1/query?query={escaped}"))?;
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().cloned()
    }

    fn get(&self, path: &str) -> Option<Value> {
        let mut connection = Connection::try_to(self.address).ok()?;
        let reply = connection.try_request("GET", path, &[], b"").ok()?;
        (reply.status != 503).then(|| reply.json())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Prometheus parses every query of the dashboard and has an answer from a running service. It takes every alert.
#[test]
fn prometheus_answers_every_query() {
    if !is_installed("prometheus") {
        return skip("prometheus");
    }
    let place = Place::new();
    let service = start_busy_service(&place);
    let other_place = Place::new();
    let (encrypted, _) = start_encrypted_service(&other_place);
    let prometheus = Prometheus::start(&place, &service, &encrypted);
    let mut unanswered = dashboard_queries();
    // No alert fires here.
    unanswered.retain(|query| query.panel != "Alerts");
    let begun = Instant::now();
    let mut round = 1;
    while !unanswered.is_empty() {
        let first = &unanswered[0];
        let is_late = begun.elapsed() > PATIENCE;
        assert!(
            !is_late,
            "{}: no answer to {}",
            first.panel, first.expression
        );
        keep_busy(&service, round);
        std::thread::sleep(Duration::from_millis(250));
        round += 1;
        let has_answer = |query: &DashboardQuery| {
            let answer = prometheus.query(&query.expression);
            answer.is_some_and(|series| !series.is_empty())
        };
        unanswered.retain(|query| !has_answer(query));
    }
    prometheus
        .query("ALERTS{alertname=~\"Lookalike.*\"}")
        .unwrap();
    let rules = prometheus.get("/api/v1/rules").unwrap();
    let rules = rules["data"]["groups"][0]["rules"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(
        rules.len(),
        values_after(&read_deployed("alerts.yml"), "alert: ").len()
    );
    for rule in rules {
        assert_ne!(rule["health"], "err", "{rule}");
        assert_ne!(rule["state"], "firing", "{rule}");
    }
}

/// The files that the containers mount exist, and Prometheus scrapes under the name that the alerts expect.
#[test]
fn containers_mount_existing_files() {
    let compose = read_deployed("compose.yaml");
    let mounted = compose
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ./"));
    let mounted: BTreeSet<_> = mounted
        .map(|mounted| mounted.split(':').next().unwrap())
        .collect();
    assert!(mounted.len() >= 5, "{mounted:?}");
    for file in &mounted {
        assert!(deployed(file).is_file(), "{file}");
    }
    let prometheus = read_deployed("prometheus.yml");
    assert_eq!(values_after(&prometheus, "job_name: "), ["lookalike"]);
    assert!(prometheus.contains("rule_files: [alerts.yml]") && mounted.contains("alerts.yml"));
    assert!(prometheus.contains("credentials_file: /run/secrets/read-key"));
    if is_installed("promtool") {
        let place = Place::new();
        for file in ["prometheus.yml", "alerts.yml"] {
            let text = read_deployed(file).replace("/run/secrets/", "");
            place.write(file, text);
        }
        place.write("read-key", "a key of this test");
        let checked = Command::new("promtool")
            .args(["check", "config", "prometheus.yml"])
            .current_dir(place.path(""))
            .output()
            .unwrap();
        assert!(checked.status.success(), "{checked:?}");
    }
}

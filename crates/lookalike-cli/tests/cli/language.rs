//! The language of what people read: `--lang`, and the environment.

use std::collections::BTreeSet;

use crate::support::{Place, Ran, jsonl};

const A: &str = "老船长今天清晨解开了缆绳，驶向北方的海岛。风不大，海面很平静。";
const B: &str = "老船长今天清晨解开了缆绳，驶向南方的海岛。风不大，海面很平静。";

/// Words that Chinese output has in Latin letters: names of algorithms, tools, files and options.
const NAMES: &[&str] = &[
    "JSON",
    "id",
    "bytes",
    "byte",
    "Jaccard",
    "SimHash",
    "MinHash",
    "base",
    "max-documents",
    "FILE",
    "Bottom-k",
    "bottom-k",
    "Levenshtein",
    "Indel",
    "1e0ng",
    "seomoz",
    "java-classic",
    "datasketch-legacy",
    "jieba-full",
    "jieba-search",
    "default",
    "jieba",
    "datasketch",
    "simhash",
    "simhash-py",
    "yanyiwu",
    "Java",
    "subByDistance",
    "auto",
    "join",
    "minhash",
    "exact",
    "bottomk",
    "sentences",
    "lookalike",
    "explain",
    "forms",
    "learn",
    "jsonl",
    "tsv",
    "removed",
    "MB",
    "kB",
    "bytes",
    "out",
    "in",
    "all",
    "threshold",
    "ID",
    "cosine",
    "containment",
    "levenshtein",
    "sample",
    "dry-run",
    "against",
    "time",
];

/// Returns the words in Latin letters that are no names, numbers in hexadecimal digits or names of recipes.
fn english_words(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words = text.split(|c| !is_part(c)).map(|it| it.trim_matches('-'));
    let words =
        words.filter(|word| word.len() > 1 && word.chars().any(|c| c.is_ascii_alphabetic()));
    let is_hex = |word: &&str| word.chars().all(|c| c.is_ascii_hexdigit());
    let is_name =
        |word: &&str| NAMES.contains(word) || word.ends_with(|c: char| c.is_ascii_digit());
    words
        .filter(|word| !is_hex(word) && !is_name(word))
        .map(str::to_owned)
        .collect()
}

fn with_environment(place: &Place, line: &str, stated: &[(&str, &str)]) -> Ran {
    let mut command = place.command(line);
    command.envs(stated.iter().copied());
    Ran::from(command.output().unwrap())
}

#[test]
fn comparison_is_chinese_in_every_recipe() {
    let place = Place::new();
    let mut options = vec![
        "--method simhash --distance 3".to_owned(),
        "--method simhash --verify none --distance 30".to_owned(),
        "--method simhash --candidates blocks --distance 1".to_owned(),
        "--method minhash --verify none".to_owned(),
        "--method bottomk --verify containment".to_owned(),
        "--method sentences --verify none".to_owned(),
        "--method exact".to_owned(),
        "--verify levenshtein --threshold 0.5".to_owned(),
        "--verify indel --unit words --threshold 0.99".to_owned(),
        "--verify lcs --threshold 0.5".to_owned(),
        "--verify cosine".to_owned(),
        "--reworded".to_owned(),
    ];
    let recipes = place.ok("recipe");
    let names = recipes
        .text()
        .lines()
        .filter_map(|line| line.split(' ').next());
    // That one wants tables.
    options.extend(
        names
            .filter(|name| *name != "yanyiwu")
            .map(|name| format!("--recipe {name}")),
    );
    assert!(options.len() > 18);
    let texts = [
        (A, B),
        (A, A),
        (A, "船"),
        ("", "。。"),
        (A, "完全不同的另一篇文章，没有相同之处。"),
    ];
    for options in &options {
        for (a, b) in texts {
            let mut command = place.command(&format!("compare --lang zh --literal {options}"));
            let ran = Ran::from(command.arg("--").args([a, b]).output().unwrap());
            if ran.code == Some(2) {
                // Options that do not fit a recipe.
                continue;
            }
            assert_eq!(
                english_words(ran.text()),
                BTreeSet::new(),
                "{options}: {}",
                ran.text()
            );
            assert!(ran.text().contains("匹配：") && ran.text().contains("相似度"));
        }
    }
    let shown = place.ok(&format!("compare --lang zh --literal {A} {B}"));
    for part in ["归一化", "分词", "海明距离", "≥ 阈值 0.75", "[-北-]{+南+}"] {
        assert!(shown.text().contains(part), "{part}: {}", shown.text());
    }
}

#[test]
fn summaries_are_chinese() {
    let place = Place::new();
    let long = A.repeat(3);
    place.write(
        "in.jsonl",
        jsonl([
            ("1", A),
            ("2", B),
            ("3", A),
            ("4", "船"),
            ("5", ""),
            ("6", "。"),
            ("7", &long),
        ]) + "{bad\n",
    );
    for line in [
        "dedup in.jsonl -o out.jsonl --removed removed.tsv --components",
        "dedup in.jsonl --dry-run --audit=3 --threshold 0.5",
        "dedup in.jsonl --against in.jsonl -o out.jsonl --passages mark --min-length 4",
        "pairs in.jsonl -o all.tsv --threshold 0.6",
        "pairs in.jsonl --distinct --sample-by-similarity 1 --threshold 0.6",
        "passages in.jsonl -o all.tsv --min-length 3",
        "passages in.jsonl --show --min-length 3",
        "fingerprint in.jsonl -o all.tsv",
        "fingerprint in.jsonl -o all.tsv --method bottomk",
        "segment in.jsonl -o all.tsv",
        "idf in.jsonl -o all.tsv",
        "index build all in.jsonl",
        "search all in.jsonl -o all.tsv",
        "plant in.jsonl -o out.jsonl --labels all.tsv --documents 3 --quiet",
    ] {
        let ran = place.run(&format!("{line} --lang zh"));
        assert!(matches!(ran.code, Some(0 | 1)), "{line}: {}", ran.err);
        // Tables stay English.
        let mut told = ran.err.clone();
        if line.contains("sample") || line.contains("show") {
            told.push_str(ran.text());
        }
        assert_eq!(english_words(&told), BTreeSet::new(), "{line}: {told}");
    }
    let ran = place.run("dedup in.jsonl -o out.jsonl --removed removed.tsv --lang zh");
    for part in [
        "7 篇文档",
        "  保留             ",
        "归一化后相同",
        "坏行             略过 1 行",
        "阈值 0.75",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}

/// Rows that cannot be used, one for each reason, and the options of a run that refuses the last ones.
const BAD_ROWS: &[(&str, &str)] = &[
    ("", r#"{"id":"b"}"#),
    ("", r#"{"id":"b","text":null}"#),
    ("", r#"{"id":"b","text":7}"#),
    ("", r#"{"id":"b","text":[7]}"#),
    ("", r#"{"id":{},"text":"a"}"#),
    ("", r#"{"id":"","text":"a"}"#),
    ("", r#"{"id":true,"text":"a"}"#),
    ("", r#"["a"]"#),
    ("", "7"),
    ("", "[{"),
    ("", r#"{"text":"\ud800"}"#),
    ("", r#"{"text":"a""#),
    ("", r#"{"text":"a"#),
    ("", r#"{"text":"#),
    ("", r#"{"text" 1}"#),
    ("", r#"{"text":[1}"#),
    ("", r#"{"text":{"a":1]"#),
    ("", r#"{"text":nul}"#),
    ("", r#"{"text":x}"#),
    ("", r#"{"text":"\x"}"#),
    ("", r#"{"text":01}"#),
    ("", r#"{"text":"a"} x"#),
    ("", r#"{"text":"a",}"#),
    ("", r#"{1:2}"#),
    ("", "{\"text\":\"a\u{1}\"}"),
    ("--time time --window 1d", r#"{"id":"b","text":"a"}"#),
    (
        "--time time --window 1d",
        r#"{"id":"b","text":"a","time":null}"#,
    ),
    (
        "--time time --window 1d",
        r#"{"id":"b","text":"a","time":true}"#,
    ),
    (
        "--time time --window 1d",
        r#"{"id":"b","text":"a","time":20260102}"#,
    ),
    (
        "--time time --window 1d",
        r#"{"id":"b","text":"a","time":1700000000000}"#,
    ),
    (
        "--time time --window 1d",
        r#"{"id":"b","text":"a","time":"当时"}"#,
    ),
    ("--features words", r#"{"id":"b","text":"a"}"#),
    ("--features words", r#"{"id":"b","text":"a","words":7}"#),
    (
        "--features words",
        r#"{"id":"b","text":"a","words":[["a",-1]]}"#,
    ),
    ("--text text,more", r#"{"id":"b"}"#),
];

#[test]
fn reasons_of_bad_rows_are_chinese() {
    let place = Place::new();
    let good = format!(
        "{{\"id\":\"a\",\"text\":\"{A}\",\"more\":\"{B}\",\"time\":1,\"words\":[\"a\"]}}\n"
    );
    for (options, row) in BAD_ROWS {
        place.write("in.jsonl", format!("{good}{row}\n"));
        let line = format!("dedup in.jsonl --dry-run {options}");
        let ran = place.run(&format!("{line} --lang zh"));
        assert_eq!(ran.code, Some(1), "{row}: {}", ran.err);
        let told = ran.err.lines().find(|line| line.starts_with("警告："));
        let told = told.unwrap_or_else(|| panic!("{row}: {}", ran.err));
        let words = english_words(told);
        let names = [
            "text", "time", "words", "JSON", "JSONL", "null", "ISO", "nul", "more", "u001F",
        ];
        let rest: Vec<_> = words
            .iter()
            .filter(|word| !names.contains(&&***word))
            .collect();
        assert!(rest.is_empty(), "{row}: {rest:?} in {told}");
        // In English, nothing has changed.
        assert!(
            place.run(&line).err.contains("warning: in.jsonl:2: "),
            "{row}"
        );
    }
    for (name, bytes, part) in [
        ("in.csv", &b"id,text\n1,a\n2\n"[..], "1 个字段，首行有 2 个"),
        ("in.csv", b"id,text\n1,a\n2,\"b\n", "没有闭合"),
        (
            "in.jsonl",
            b"{\"text\":\"a\"}\n{\"text\":\"\xFF\"}\n",
            "不是 UTF-8（从第 10 字节起）",
        ),
    ] {
        place.write(name, bytes);
        let ran = place.run(&format!("dedup {name} --dry-run --lang zh"));
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}

#[test]
fn warnings_are_chinese() {
    let place = Place::new();
    place.write("some/in.jsonl", jsonl([("1", A), ("1", B), ("2", A)]));
    place.write("some/in.bin", "?");
    place.ok("index build all some/in.jsonl");
    let texts = "a,b,label\n1,2,1\n1,3,0\n2,1,1\n3,1,0\n1,4,0\n4,2,1\n";
    place.write("in.csv", texts);
    for (line, part) in [
        ("dedup some --dry-run", "的 id 与前面的相同，第一个是"),
        ("dedup some --dry-run", "1 个文件因格式未知而略过"),
        ("index remove all 9", "all 里没有 id '9'"),
        ("index build more some/in.jsonl", "输入的第 1 行"),
        ("eval in.csv", "像是 id"),
    ] {
        let ran = place.run(&format!("{line} --lang zh"));
        let told: Vec<_> = ran
            .err
            .lines()
            .filter(|it| it.starts_with("警告："))
            .collect();
        assert!(
            told.iter().any(|it| it.contains(part)),
            "{line}: {}",
            ran.err
        );
        let names = [
            "some",
            "bin",
            "source",
            "row",
            "id-row",
            "strict",
            "format",
            "corpus",
            "FILE",
            "index",
            "remove",
            "lookalike",
            "passages",
            "extracted",
            "Word",
            "PDF",
            "HTML",
            "Markdown",
        ];
        let words = english_words(&told.join("\n"));
        let rest: Vec<_> = words
            .iter()
            .filter(|word| !names.contains(&&***word))
            .collect();
        assert!(rest.is_empty(), "{line}: {rest:?} in {told:?}");
    }
}

/// `explain`, `eval`, `tune`, `status` and `store` speak to people in Chinese, too.
#[test]
fn other_commands_are_chinese() {
    let place = Place::new();
    let texts = [("1", A), ("2", B), ("3", A), ("4", "船")];
    place.write("in.jsonl", jsonl(texts));
    place.ok("dedup in.jsonl -o out.jsonl --removed removed.tsv --threshold 0.5 --work run1");
    let label = |a: &str, b: &str, label: u8| {
        format!("{{\"a\":\"{a}\",\"b\":\"{b}\",\"label\":{label}}}\n")
    };
    let mut pairs = String::new();
    for at in 0..8 {
        let (start, other) = (
            format!("{at}{A}"),
            format!("{at}完全不同的另一篇文章，没有相同之处。"),
        );
        pairs += &label(&start, &format!("{at}{B}"), 1);
        pairs += &label(&start, &other, 0);
    }
    place.write("labelled.jsonl", pairs);
    place.write("truth.tsv", "id\tcluster\n1\ta\n2\ta\n3\tb\n");
    place.write("settings.json", "{}");
    let row = |(id, text): &(&str, &str)| {
        format!("{{\"id\":\"{id}\",\"time_us\":1,\"text\":\"{text}\",\"seq\":{id}}}\n")
    };
    place.write("rows.jsonl", texts.iter().map(row).collect::<String>());
    for (line, parts) in [
        (
            "explain removed.tsv 3 in.jsonl",
            &["已删除", "归一化后相同", "相似度"][..],
        ),
        ("explain removed.tsv 2 in.jsonl", &["Jaccard 系数", "共有"]),
        ("explain removed.tsv 1 in.jsonl", &["未删除", "它被保留"]),
        ("status run1", &["阶段", "已判定"]),
        (
            "eval labelled.jsonl --quiet",
            &["精确率", "召回率", "最佳", "按长度"],
        ),
        (
            "eval truth.tsv --clusters truth.tsv --quiet",
            &["预测", "按对"],
        ),
        (
            "tune labelled.jsonl -o mine.toml --quiet",
            &["选用", "留出", "次选"],
        ),
        (
            "store import coll rows.jsonl --settings settings.json",
            &["已导入 4 篇文档"],
        ),
        ("store verify coll", &["完整"]),
        ("store repair coll coll2", &["写入"]),
        ("store export coll -o export.jsonl", &["已导出 4 篇文档"]),
    ] {
        let ran = place.run(&format!("{line} --lang zh"));
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
        let told = format!("{}{}", ran.text(), ran.err);
        for part in parts {
            assert!(told.contains(part), "{line}: {part} in {told}");
        }
        // Names of settings and the command line that uses them are the same in every language.
        let is_name = |line: &&str| {
            line.contains("lookalike dedup") || line.contains(", ") && line.contains('-')
        };
        let told: String = told
            .lines()
            .filter(|it| !is_name(it))
            .collect::<Vec<_>>()
            .join("\n");
        let words = english_words(&told);
        let names = [
            "plant", "jaccard", "coll", "coll2", "export", "run1", "F1", "B-cubed", "plagdet",
            "dedup", "row", "han", "Han", "to",
        ];
        let rest: Vec<_> = words
            .iter()
            .filter(|word| !names.contains(&&***word))
            .collect();
        assert!(rest.is_empty(), "{line}: {rest:?} in {told}");
    }
}

/// `--lang` also chooses the language in which a report opens; without it and without a locale the browser does.
#[test]
fn reports_open_in_the_stated_language() {
    let place = Place::new();
    place.write("in.jsonl", jsonl([("1", A), ("2", B)]));
    let language = |options: &str, stated: &[(&str, &str)]| {
        let all = [("LC_ALL", ""), ("LC_MESSAGES", ""), ("LANG", "")];
        let stated: Vec<_> = all.iter().chain(stated).copied().collect();
        let line = format!("dedup in.jsonl -o out.jsonl --report page.html{options}");
        assert_eq!(with_environment(&place, &line, &stated).code, Some(0));
        crate::reporting::read_report(&place, "page.html")["language"].clone()
    };
    assert_eq!(language("", &[]), serde_json::Value::Null);
    assert_eq!(language("", &[("LANG", "zh_CN.UTF-8")]), "zh");
    assert_eq!(language(" --lang zh", &[("LANG", "en_GB.UTF-8")]), "zh");
    assert_eq!(language(" --lang en", &[("LANG", "zh_CN.UTF-8")]), "en");
    assert_eq!(language(" --lang zh", &[]), "zh");
}

#[test]
fn environment_or_option_chooses_the_language() {
    let place = Place::new();
    place.write("in.jsonl", jsonl([("1", A), ("2", B)]));
    let is_chinese = |line: &str, stated: &[(&str, &str)]| {
        let all = [("LC_ALL", ""), ("LC_MESSAGES", ""), ("LANG", "")];
        let stated: Vec<_> = all.iter().chain(stated).copied().collect();
        with_environment(&place, line, &stated)
            .err
            .contains("篇文档")
    };
    let line = "dedup in.jsonl --dry-run";
    assert!(!is_chinese(line, &[]));
    assert!(is_chinese(line, &[("LANG", "zh_CN.UTF-8")]));
    assert!(!is_chinese(
        line,
        &[("LANG", "zh_CN.UTF-8"), ("LC_ALL", "C.UTF-8")]
    ));
    assert!(is_chinese(
        line,
        &[("LANG", "de_DE"), ("LC_MESSAGES", "zh_CN")]
    ));
    assert!(!is_chinese(
        &format!("{line} --lang en"),
        &[("LANG", "zh_CN.UTF-8")]
    ));
    assert!(is_chinese(&format!("{line} --lang=zh"), &[]));
    place.refused(
        "dedup in.jsonl --dry-run --lang fr",
        &["invalid value 'fr'", "en, zh"],
    );
}

/// JSON, tables, manual pages and the reference are the same in every language.
#[test]
fn data_does_not_depend_on_the_language() {
    let place = Place::new();
    place.write("in.jsonl", jsonl([("1", A), ("2", B), ("3", A)]));
    let chinese = [("LC_ALL", "zh_CN.UTF-8")];
    for line in [
        "dedup in.jsonl --quiet --threshold 0.5 -o -",
        "pairs in.jsonl --quiet",
        "segment in.jsonl --quiet",
        "compare --literal 一二三四 一二三五 --json",
        "reference",
        "man",
        "completions bash",
        "recipe",
    ] {
        let english = place.ok(line);
        let other = with_environment(&place, line, &chinese);
        assert_eq!((english.out, english.err), (other.out, other.err), "{line}");
    }
    let summary = |stated: &[(&str, &str)]| {
        let line = "pairs in.jsonl --sample-by-similarity 2 --json";
        let ran = with_environment(&place, line, stated);
        let mut summary: serde_json::Value = serde_json::from_slice(&ran.out).unwrap();
        summary["seconds"] = serde_json::Value::Null;
        summary
    };
    assert_eq!(summary(&[]), summary(&chinese));
}

/// Help is Chinese where the language is, short and long, of every command, and fits into the same lines.
#[test]
fn help_is_chinese() {
    let place = Place::new();
    let chinese = [("LC_ALL", "zh_CN.UTF-8")];
    for (line, parts) in [
        (
            "",
            &[
                "用法：lookalike [选项] <COMMAND>",
                "命令：",
                "每簇近似重复的文档保留一篇",
            ][..],
        ),
        ("-h", &["命令：", "选项：", "显示帮助"]),
        ("--help", &["退出码：", "0  完成", "默认的相似度是"]),
        (
            "dedup -h",
            &[
                "参数：",
                "匹配：",
                "输入：",
                "[可选值：auto",
                "[默认：first]",
                "`--help` 有更多选项",
                "例子：",
            ],
        ),
        (
            "dedup --help",
            &[
                "可选值：",
                "- auto：短文档用精确连接",
                "人的决定，由报告保存",
                "[默认：1Gi]",
            ],
        ),
        ("help pairs", &["列出每一对近似重复的文档及其相似度"]),
        ("index build --help", &["建立文档或指纹的索引"]),
        ("serve -h", &["运行 HTTP 服务"]),
        ("store log --help", &["查看、检查和修复共享日志"]),
    ] {
        let ran = with_environment(&place, line, &chinese);
        let text = format!("{}{}", ran.text(), ran.err);
        for part in parts {
            assert!(text.contains(part), "{line}: {part} in {text}");
        }
        for english in [
            "Usage:",
            "Options:",
            "Print ",
            "possible values",
            "default:",
            "\u{2063}",
        ] {
            assert!(!text.contains(english), "{line}: {english} in {text}");
        }
        // Lines are broken for a terminal, except for lines of examples, names and long words.
        let is_wide = |line: &&str| unicode_width::UnicodeWidthStr::width(*line) > 130;
        let wide: Vec<_> = text.lines().filter(is_wide).collect();
        assert!(wide.is_empty(), "{line}: {wide:#?}");
    }
    for command in [
        "dedup",
        "pairs",
        "passages",
        "decontaminate",
        "serve",
        "eval",
        "index build",
    ] {
        let ran = with_environment(&place, &format!("{command} -h"), &chinese);
        assert!(
            ran.text().lines().count() <= 60,
            "{command}: {}",
            ran.text()
        );
    }
    let stated = place.ok("dedup -h --lang zh");
    assert!(stated.text().contains("用法："), "{}", stated.text());
    let colored = place.ok("dedup -h --lang zh --color always");
    assert!(colored.text().contains("\u{1b}[") && colored.text().contains("用法："));
}

/// Mistakes in arguments and failures are told in Chinese.
#[test]
fn refusals_are_chinese() {
    let place = Place::new();
    place.write("in.jsonl", jsonl([("1", A), ("2", B)]));
    place.write("in.txt", "text\n");
    place.ok("index build lib in.jsonl");
    place.ok("idf in.jsonl -o idf.tsv --recipe words-1");
    place.write("words.txt", b"\xB6\xC9\xBF\xDA 3 n\n");
    place.write("stop.txt", "of\n");
    let changed = place.ok("recipe jieba --set filter.stopwords=stop.txt");
    place.write("changed.toml", changed.text());
    place.write("stop.txt", "of\nthe\n");
    for (line, parts) in [
        (
            "dedup --thresh",
            &[
                "没有 '--thresh' 这个参数",
                "提示：有相近的参数：'--threshold'",
                "用法：",
                "更多说明见",
            ][..],
        ),
        (
            "dedup in.jsonl --threshold",
            &["'--threshold <T>' 需要一个值"],
        ),
        (
            "dedup in.jsonl --threshold 3 -o x.jsonl",
            &[
                "值 '3' 不能用于 '--threshold <T>'",
                "阈值 3 无效：必须大于 0",
            ],
        ),
        (
            "dedup in.jsonl --method fast -o x.jsonl",
            &["值 'fast' 不能用于", "[可选值：auto、minhash"],
        ),
        ("dedup in.jsonl --lang fr", &["值 'fr' 不能用于"]),
        (
            "dedpu in.jsonl",
            &["没有 'dedpu' 这个命令", "提示：有相近的命令：'dedup'"],
        ),
        ("in.jsonl", &["是文件，不是命令"]),
        ("explain", &["缺少以下必需的参数："]),
        ("dedup in.jsonl --id a --id-row -o x.jsonl", &["不能与"]),
        ("dedup in.jsonl", &["没有给出输出"]),
        (
            "dedup none.jsonl -o x.jsonl",
            &["无法打开 none.jsonl：没有这个文件或目录"],
        ),
        (
            "dedup in.jsonl --text body -o x.jsonl",
            &[
                "都没有作为文本的字段 `body`",
                "有的字段是",
                "可能是指 `text`",
            ],
        ),
        ("dedup in.jsonl -o in.jsonl", &["输出 in.jsonl 就是输入"]),
        ("dedup in.jsonl -o no/x.jsonl", &["目录 no 不存在"]),
        ("index build lib in.jsonl", &["已经是索引"]),
        (
            "explain in.jsonl 1 in.jsonl",
            &["这不是 `dedup --removed` 写的"],
        ),
        ("compare none.txt in.txt", &["没有文件 none.txt"]),
        ("dedup *.csv -o x.csv", &["没有文件与 `*.csv` 匹配"]),
        (
            "dedup in.jsonl --encoding gbkk -o x.jsonl",
            &["值 'gbkk' 不能用于", "没有这种编码"],
        ),
        (
            "dedup in.jsonl --keep max:nope -o x.jsonl",
            &["--keep max:nope：2 篇文档都没有字段 'nope'：有的字段是"],
        ),
        (
            "dedup in.jsonl --forms none -o x.jsonl",
            &["没有模板表 none：请给出 learn、off 或文件"],
        ),
        (
            "dedup in.jsonl --method simhash --distance 70 -o x.jsonl",
            &["海明距离 70 应小于指纹的 64 位"],
        ),
        (
            "segment in.jsonl --recipe jeiba",
            &["没有名为 'jeiba' 的配方：请用 default-1"],
        ),
        (
            "segment in.jsonl --set nope=1",
            &[
                "--set nope=1）：这不是合法的配方：",
                "没有 `nope` 这一项，应为以下之一",
            ],
        ),
        (
            "segment in.jsonl --set simhash.weights=tfidf",
            &["simhash.weights = \"tfidf\" 需要 simhash.table"],
        ),
        (
            "segment in.jsonl --set simhash.weights=tfidf --set simhash.table=idf.tsv",
            &[
                "simhash.table：idf.tsv 是按配方 words-1",
                "的词条不同：请用 `lookalike idf`",
            ],
        ),
        (
            "segment in.jsonl --recipe jieba --set segment.user=words.txt",
            &["配方 'jieba+'：segment.user: words.txt:1：这一行不是 UTF-8，请先转换文件"],
        ),
        (
            "segment in.jsonl --recipe changed.toml",
            &["stop.txt 的摘要是", "文件已不是此配方的文件"],
        ),
    ] {
        let ran = with_environment(&place, line, &[("LC_ALL", "zh_CN.UTF-8")]);
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.err);
        for part in parts {
            assert!(ran.err.contains(part), "{line}: {part} in {}", ran.err);
        }
    }
}

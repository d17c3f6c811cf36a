//! The catalogue of messages in English and Chinese.
//!
//! Chinese terms: 近似重复 (near-duplicate), 阈值 (threshold), 指纹 (fingerprint), 海明距离 (Hamming distance),
//! 分词 (tokens), 特征 (feature), 归一化 (normalisation), 候选 (candidate), 召回率 (recall), 精确率 (precision).

use std::fmt::Display;

use super::{MessageLanguage, NounCount};

/// Makes a function of each message: its arguments, its text in English, and its text in Chinese.
macro_rules! messages {
    ($($name:ident($($argument:ident: $kind:ty),*) $english:literal $chinese:literal;)*) => {
        $(
            pub(crate) fn $name($($argument: $kind),*) -> String {
                match MessageLanguage::current() {
                    MessageLanguage::English => format!($english),
                    MessageLanguage::Chinese => format!($chinese),
                }
            }
        )*

        /// Name, English and Chinese of each message.
        #[cfg(test)]
        const TEMPLATES: &[(&str, &str, &str)] = &[$((stringify!($name), $english, $chinese)),*];
    };
}

messages! {
    // Units and marks.
    seconds(number: impl Display) "{number} s" "{number} 秒";
    minutes(number: impl Display) "{number} min" "{number} 分钟";
    hours(number: impl Display, minutes: impl Display) "{number} h {minutes} min" "{number} 小时 {minutes} 分钟";
    band(from: impl Display, below: impl Display) "{from} to {below}" "{from} 至 {below}";
    words_in_common(number: String) "… {number} words in common …" "…（相同的 {number} 个词）…";
    words_left_out(number: String) "… {number} words …" "…（{number} 个词）…";
    further_differences(count: NounCount) "… {count}" "… 另有 {count}";

    // Help, and failures.
    help_has_more() "`--help` has more options, and all of them in full." "`--help` 有更多选项，并有全部说明。";
    correct_the_row()
        "Correct the row, or leave out --strict: bad rows are then skipped and reported."
        "请改正这一行，或去掉 --strict：坏行便会略过并报告。";
    nothing_incomplete() "No incomplete output was written under its name." "没有在输出的名称下留下不完整的文件。";
    folder_is_no_command(given: &str, quoted: &str)
        "'{given}' is a folder, and no command: did you mean `lookalike passages {quoted}`, which finds shared passages, or `lookalike dedup {quoted} -o unique.jsonl`?"
        "'{given}' 是文件夹，不是命令：是否想用 `lookalike passages {quoted}` 查找相同的段落，或用 `lookalike dedup {quoted} -o unique.jsonl` 去重？";
    file_is_no_command(given: &str, quoted: &str)
        "'{given}' is a file, and no command: did you mean `lookalike dedup {quoted} -o unique.jsonl`, or `lookalike head {quoted}`, which shows its fields?"
        "'{given}' 是文件，不是命令：是否想用 `lookalike dedup {quoted} -o unique.jsonl` 去重，或用 `lookalike head {quoted}` 查看字段？";

    // A double click on the program.
    console_is_open(page: &str) "lookalike is open in your browser: {page}" "lookalike 已在浏览器中打开：{page}";
    console_without_browser(page: &str) "No browser can be opened from here. Open this address in one: {page}" "无法在此打开浏览器，请在浏览器中打开这个地址：{page}";
    keep_window_open() "Keep this window open while you use it. Closing it ends lookalike." "使用期间请不要关闭本窗口；关闭本窗口即退出 lookalike。";
    drop_on_the_page() "Or double-click lookalike, and drop the files or the folder on the page that opens." "也可以双击 lookalike，再把文件或文件夹拖放到打开的页面上。";
    press_enter() "Press Enter to close this window." "按回车键关闭本窗口。";

    // Warnings.
    warning() "warning:" "警告：";
    more_bad_rows(count: NounCount, reason: &str, hint: &str) "{count}: {reason}{hint}" "另有 {count}：{reason}{hint}";
    other_reasons() "other reasons" "其他原因";
    rejected_option_hint() "; --rejected FILE writes them all" "；--rejected FILE 把它们全部写出";
    repeated_document_ids(count: NounCount, id: &str, first: &str, next: &str)
        "{count} the id of an earlier document, first '{id}' in {first} and {next}: tables distinguish them by source and row; --id-row uses row numbers as ids, --strict refuses repeated ids"
        "{count}的 id 与前面的相同，第一个是 {first} 和 {next} 里的 '{id}'：各表用 source 和 row 区分它们；--id-row 以行号作 id，--strict 拒绝重复的 id";
    repeated_row_ids(count: NounCount, id: &str, first: &str, next: &str)
        "{count} the id of an earlier row, first '{id}' in {first} and {next}: `index remove` removes all rows of an id; --id-row uses row numbers as ids, --strict refuses repeated ids"
        "{count}的 id 与前面的相同，第一个是 {first} 和 {next} 里的 '{id}'：`index remove` 会移走同一 id 的所有行；--id-row 以行号作 id，--strict 拒绝重复的 id";
    skipped_files(count: NounCount, first: &str)
        "{count} skipped because the format is unknown: {first}; give --format if they are rows or lines; save documents as .docx, .html or .txt, of which `lookalike passages FOLDER --extracted OUT` writes the texts"
        "目录中有 {count}因格式未知而略过：{first}；若是数据行或文本行，请用 --format 指定格式；Word、PDF、HTML 和 Markdown 的文本可用 `lookalike passages 目录 --extracted 输出` 写出，其他文档请先另存为 Word 文档";
    few_pairs_for_choosing(similar: &str, different: &str)
        "the half for choosing has only {similar} similar and {different} other pairs: another sample may choose another setting. Label about 200 pairs, or make more with lookalike plant"
        "用于选择的一半只有 {similar} 对相似、{different} 对不相似：换一个样本可能选出另一组设置。请标注约 200 对，或用 lookalike plant 生成更多";
    goal_is_missed(precision: &str, goal: impl Display)
        "the goal is missed on the half held back: the precision is {precision}, the goal {goal}. Label more pairs, or give a higher goal"
        "留出的一半没有达到目标：精确率为 {precision}，目标为 {goal}。请标注更多的对，或设更高的目标";
    texts_look_like_ids()
        "every text is one word, as ids are: if these are ids, give the documents with --corpus FILE"
        "每篇文本都只有一个词，像是 id：如果确实是 id，请用 --corpus FILE 给出文档";
    deleted_may_have_returned()
        "documents have returned if their deletion was in the lost part" "如果删除记录在丢失的部分里，被删除的文档会重新出现";
    sketches_are_damaged(first: &str)
        "the sketches of '{first}' are damaged: the service computes them again from the texts" "'{first}' 的草图已损坏：服务会从文本重新计算";
    sketches_of_more_are_damaged(first: &str, count: NounCount)
        "the sketches of '{first}' and of {count} are damaged: the service computes them again from the texts"
        "'{first}' 和另外 {count}的草图已损坏：服务会从文本重新计算";
    more_findings(count: NounCount) "{count}; --json lists them all" "另有 {count}；--json 列出全部";
    id_is_not_in(id: &str, library: impl Display) "the id '{id}' is not in {library}" "{library} 里没有 id '{id}'";
    more_ids_are_missing(count: NounCount)
        "{count} not in the index; --json lists them all" "另有 {count}不在索引里；--json 列出全部";
    row_cannot_be_used(place: &str, reason: &str) "{place} cannot be used: {reason}" "{place} 不能用：{reason}";

    replaced(place: impl Display) "replaced {place}, which existed before" "已替换原有的 {place}";

    mcp_waits(folders: usize)
        "MCP server on standard input and output; folders that may be read: {folders}" "MCP 服务器已在标准输入和标准输出上就绪；可读取的文件夹：{folders} 个";
    mcp_without_folders()
        "no tool reads files without --folder DIR" "没有 --folder 目录，各工具都不读取文件";

    // Progress.
    reading() "reading" "读取";
    finding_candidates() "finding candidates" "查找候选";
    learning_forms() "learning forms" "学习模板";
    forms() "forms" "模板";
    forms_of_documents(forms: &str, documents: &str) "{forms}, learned of {documents} documents" "{forms} 个，由 {documents} 篇文档学得";
    searching_library() "searching the library" "搜索文档库";
    comparing() "comparing" "比较";
    finding_passages() "finding repeated passages" "查找重复段落";
    measuring() "measuring" "评测";
    opening_index() "reading the index" "读取索引";
    indexing() "indexing" "建立索引";
    writing() "writing" "写出";
    stage_since(stage: &str, time: &str) "{stage} for {time}" "{stage}：已用 {time}";
    stage_without_end(stage: &str, done: &str, rate: &str) "{stage}: {done}{rate}" "{stage}：{done}{rate}";
    rate_of_bytes(rate: impl Display) ", {rate} MB/s" "，{rate} MB/s";
    rate_of_documents(rate: impl Display) ", {rate} a second" "，每秒 {rate} 篇";
    documents_done(done: &str, total: &str) "{done} of {total} documents" "{done} / {total} 篇文档";
    settings_done(done: &str, total: &str) "{done} of {total} settings" "{done} / {total} 组设置";
    bytes_done(done: &str, total: &str) "{done} of {total}" "{done} / {total}";
    stage_with_end(stage: &str, done: &str, share: impl Display, rate: &str, left: &str)
        "{stage}: {done} ({share} %){rate}, {left} left" "{stage}：{done}（{share} %）{rate}，还需 {left}";

    // Summaries of all runs.
    read_in(documents: NounCount, size: &str, time: &str) "{documents} ({size}) in {time}" "{documents}（{size}），用时 {time}";
    at_speed(rate: impl Display) ": {rate} MB/s" "，{rate} MB/s";
    bad_rows() "bad rows" "坏行";
    left_out(rows: &str) "{rows} left out" "略过 {rows} 行";
    check_option(rows: &str, option: &str)
        "{rows} left out, and no row is usable: check {option}" "略过 {rows} 行，没有一行可用：请检查 {option}";
    written_to() "written to" "写入";
    out_of_core() "out of core" "使用磁盘";
    spilled_to_disk(size: &str, documents: NounCount, groups: NounCount)
        "{size} written to temporary files; {documents} with possible matches decided in {groups}"
        "{size} 写入临时文件；可能有匹配的 {documents}，分 {groups}判定";
    written_to_disk(size: &str) "{size} written to temporary files" "{size} 写入临时文件";
    matched_by() "matched by" "匹配方式";
    unverified() ", unverified" "，不校验";
    recipe_with_id(name: &str, id: impl Display) "{name} ({id})" "{name}（{id}）";
    type_string() "string" "字符串";
    type_number() "number" "数字";
    type_boolean() "boolean" "真假";
    type_object() "object" "对象";
    type_list() "list" "列表";
    type_null() "null" "空";
    verified_by(measure: &str) ", verified by {measure}" "，以{measure}校验";
    match_rule(method: &str, check: &str, threshold: impl Display, recipe: &str)
        "{method}{check}, threshold {threshold}, recipe {recipe}" "{method}{check}，阈值 {threshold}，配方 {recipe}";
    candidates() "candidates" "候选";
    least_candidate(index: impl Display)
        "pairs with a Jaccard index of {index} or more; no others were compared" "Jaccard 系数不低于 {index} 的文档对；其余未比较";
    not_searched(threshold: impl Display)
        "pairs below {threshold} are not searched for" "不查找相似度低于 {threshold} 的文档对";
    texts_too_short() "texts too short" "过短的文本";

    // `dedup`.
    reference() "reference" "参照";
    library() "library" "文档库";
    compared_of_library(documents: NounCount, place: impl Display) "{documents} of {place}" "{place} 中的 {documents}";
    added_to_library(added: NounCount, place: impl Display, all: NounCount, size: &str)
        "{added} to {place}, which holds {all}, {size}" "{added}加入 {place}，其中共有 {all}，{size}";
    added_again(number: &str)
        "{number} of them have an id that the library had: `lookalike index remove` removes all documents of an id"
        "其中 {number} 篇的 id 已在库中：`lookalike index remove` 删除该 id 的全部文档";
    shared_ids() "shared ids" "相同的 id";
    shared_ids_of(number: &str)
        "{number} have the id or row number of a reference document: tables distinguish them by source and row"
        "{number} 篇与参照文档的 id 或行号相同：表中以来源和行号区分";
    mixed_values() "mixed values" "混合的值";
    mixed_values_of(numbers: &str, strings: &str)
        "{numbers} have a number and {strings} a string in the field of --keep: every string counts as larger than every number"
        "--keep 的字段有 {numbers} 个数字和 {strings} 个字符串：字符串一律大于数字";
    kept() "kept" "保留";
    removed() "removed" "删除";
    dropped_clusters(clusters: NounCount)
        "of {clusters} no document is kept (--drop-all)" "{clusters}一篇也不留（--drop-all）";
    share_of(number: &str, share: impl Display) "{number} ({share} %)" "{number}（{share} %）";
    by_equal_text() "equal after normalisation" "归一化后相同";
    decisions() "decisions" "人的决定";
    decisions_made(same: &str, different: &str) "{same} the same, {different} different" "相同 {same} 对，不同 {different} 对";
    decisions_without_pair() "met no pair of documents" "没有对应的文档对";
    decisions_about_forms() "of these about all documents of a form" "其中针对一种模板的全部文档";
    decisions_without_forms()
        "of these applied to two texts alone, because the run learned no forms" "其中只用于两篇文本：本次运行没有学习模板";
    decisions_on_absent_forms()
        "of these make a form that no two similar documents have: mark them again in a new report"
        "其中指定的模板没有相似的文档在用：请在新的报告里重新标记";
    decisions_of_other_recipes() "of another recipe: not applied" "属于其他配方：未采用";
    report() "report" "报告";
    passages() "passages" "段落";
    passages_marked(number: &str, documents: NounCount, tokens: &str)
        "{number} marked in {documents}, with {tokens} words or characters in all"
        "在 {documents}中标出 {number} 处，共 {tokens} 个词或字";
    passages_removed(number: &str, documents: NounCount, tokens: &str)
        "{number} removed in {documents}, with {tokens} words or characters in all"
        "从 {documents}中删去 {number} 处，共 {tokens} 个词或字";
    nothing_else_in(documents: NounCount) "nothing else is in {documents}" "{documents}全部由此构成";
    nothing_left_of(documents: NounCount) "nothing is left of {documents}" "{documents}已无剩余内容";
    clusters() "clusters" "簇";
    components() "components" "连通分量";
    largest_clusters()
        "Largest clusters: documents, least similarity, id of the kept document" "最大的簇：文档数、最低相似度、保留文档的 id";
    similarity_of_removed() "Similarity of the removed documents to the kept ones" "删除的文档与保留的文档的相似度";
    compared_as_whole(number: &str) "{number} too short for a feature: compared as a whole" "{number} 篇太短，提取不出特征：只与归一化后完全相同的文本匹配";
    compared_as_they_are(number: &str)
        "{number} of punctuation and symbols only: compared as they are" "{number} 篇只有标点和符号：按原样比较";
    empty_kept(number: &str) "{number} empty: kept, because they match nothing" "{number} 篇为空：不与任何文档匹配，保留";
    kept_apart() "kept apart" "不算重复";
    documents_kept_apart(documents: NounCount)
        "{documents}: similar to others, but saying something else" "{documents}：与别的文档相似，但模板内容、标题或数字不同";
    pairs_kept_apart(pairs: NounCount)
        "{pairs}: similar enough, but saying different things" "{pairs}：相似度足够，但模板内容、标题或数字不同";
    forms_of_run(forms: &str, documents: NounCount) "{forms}, of {documents}" "{forms} 个，涉及 {documents}";
    to_keep_forms(option: &str)
        "  To keep filled forms that say different things, run again with {option}" "  要保留同一模板而内容不同的文档，请加 {option} 再运行";
    to_extend_forms()
        "  To keep filled forms that say different things, add their forms to the table: lookalike forms learn IN --extend TABLE"
        "  要保留同一模板而内容不同的文档，请把它们的模板加进表里：lookalike forms learn IN --extend TABLE";
    to_begin_library_with_forms()
        "  A library keeps its forms. To keep filled forms that it does not know, begin a new one with a table that lookalike forms learn writes"
        "  文档库沿用建立时的模板：要保留其他模板而内容不同的文档，请用 lookalike forms learn 写的表建一个新库";
    suspicious_clusters() "Suspicious clusters" "可疑的簇";
    and_more(number: impl Display) "and {number} more; --json lists them all" "另有 {number} 个；--json 全部列出";
    nothing_written() "nothing (--dry-run)" "无（--dry-run）";
    written() "written" "写出";
    kept_rows() "kept rows" "保留的行";
    all_rows() "all rows" "全部行";
    rejected_rows() "rejected rows" "拒绝的行";
    cuts() "cuts" "删节";
    to_see_why(command: &str)
        "To see why a document was removed: {command}" "查看文档被删除的原因：{command}";
    run_with_removed()
        "run with --removed FILE, then lookalike explain" "运行时加 --removed 和文件名，然后用 lookalike explain";

    // `pairs`.
    pairs() "pairs" "文档对";
    equal_texts() "equal texts" "相同的文本";
    equal_texts_left_out(documents: NounCount)
        "{documents} with the text of an earlier one, left out" "{documents}与更早的文档文本相同，未列出";
    equal_texts_paired(documents: NounCount)
        "{documents} with the text of an earlier one, each paired with it; --all lists every combination"
        "{documents}与更早的文档文本相同，各与其配对；--all 列出所有组合";
    similarity_of_pairs() "Similarity of the pairs" "文档对的相似度";
    sample_legend()
        "Differences: [-only in the first text-] {{+only in the second text+}}" "差异：[-只在前一篇-] {{+只在后一篇+}}";
    no_pairs(band: &str) "Similarity {band}: no pairs" "相似度 {band}：没有文档对";
    all_pairs(band: &str, pairs: NounCount) "Similarity {band}: {pairs}" "相似度 {band}：{pairs}";
    some_pairs(band: &str, shown: &str, pairs: NounCount)
        "Similarity {band}: {shown} of {pairs}" "相似度 {band}：{pairs}中的 {shown} 对";
    lower_threshold(threshold: impl Display)
        "Pairs below {threshold} are not searched for: a lower --threshold shows them."
        "不查找相似度低于 {threshold} 的文档对：降低 --threshold 可以看到。";
    document_at(id: &str, source: &str, row: u64) "{id} ({source}, row {row})" "{id}（{source}，第 {row} 行）";

    // Audits.
    audit(documents: NounCount, requested: &str, seed: u64)
        "Audit: {documents}{requested} sampled (seed {seed}) and compared exactly with all documents read after them"
        "抽样检查：抽取 {documents}{requested}（种子 {seed}），与其后读到的所有文档精确比较";
    of_requested(number: &str) " of the {number} requested" "（要求 {number} 篇）";
    recall() "recall" "召回率";
    recall_of(share: &str, documents: NounCount, least: &str)
        "{share} of the matches of {documents}{least} are found" "{share}：{documents}的匹配{least}中被找到的部分";
    with_least_index(index: impl Display) " with a Jaccard index of {index} or more" "（Jaccard 系数不低于 {index}）";
    left_together() "left together" "未分开";
    left_together_of(share: &str)
        "{share} of these matches stay in the output together with the document" "{share}：这些匹配中仍与该文档同在输出里的部分";
    precision() "precision" "精确率";
    precision_of_removed(share: &str, cases: &str)
        "{share} of {cases} removed documents, verified again, reach the threshold" "{share}：{cases} 篇删除的文档再次校验后达到阈值的部分";
    precision_of_pairs(share: &str, cases: &str)
        "{share} of {cases} pairs, verified again, reach the threshold" "{share}：{cases} 对文档再次校验后达到阈值的部分";
    other_contents() "other contents" "内容不同";
    other_contents_of(share: &str, cases: &str)
        "{share} of {cases} removed documents with another text have another title, other numbers or other values of a form than the kept ones"
        "{share}：{cases} 篇文本不同的删除文档中，标题、数字或模板的值与保留文档不同的部分";
    contents_by_same_rules()
        "  by the rules by which the run keeps documents apart; --report shows removals to look at"
        "  所依据的规则与本次运行区分文档的规则相同；报告列出可供查看的删除";
    to_keep_contents()
        "  to keep such documents, run again with --forms learn" "  要保留这样的文档，请加 --forms learn 再运行";
    no_contents()
        "not compared: the recipe is that of another tool, or there are no texts" "未比较：配方是其他工具的，或没有文本";
    other_content(removed: &str, kept: &str, difference: &str)
        "  {removed} beside {kept}: {difference}" "  {removed} 与 {kept}：{difference}";
    other_content_of_many(removed: &str, others: u64, kept: &str, difference: &str)
        "  {removed} and {others} more beside {kept}: {difference}" "  {removed} 等（另有 {others} 篇）与 {kept}：{difference}";
    by_length(share: &str, cases: &str, length: &str)
        "  {share} of {cases} of {length} tokens" "  {share}：{length} 个词的 {cases}";
    planted_edits() "planted edits" "植入的改动";
    planted_found(share: &str, cases: NounCount, copies: &str)
        "{share} of {cases} that reach the threshold, of {copies} planted, are found"
        "{share}：植入 {copies} 份，其中达到阈值的 {cases}被找到的部分";
    missed_edit(share: &str, edit: &str) "  {share} of {edit}" "  {share}：{edit}";
    interval(low: impl Display, high: impl Display) "95 %: {low} to {high}" "95 %：{low} 至 {high}";
    estimate(mean: impl Display, interval: &str) "{mean} ({interval})" "{mean}（{interval}）";
    no_estimate() "no estimate" "无法估计";

    // `compare`.
    row_of(source: &str, row: &str) "{source}, row {row}" "{source}，第 {row} 行";
    compared_recipe(recipe: &str, feature: &str) "recipe {recipe}: {feature}" "配方 {recipe}：{feature}";
    given_text() "as given" "命令行给出";
    standard_input() "standard input" "标准输入";
    shared_passages()
        "Passages that B shares with A: [-only in A-] {{+only in B+}}" "B 与 A 相同的段落：[-只在 A-] {{+只在 B+}}";
    shared_passage(number: usize, b: impl Display, a: impl Display, words: NounCount, kind: &str, similarity: impl Display)
        "  {number}. line {b} of B, line {a} of A: {words}, {kind}, similarity {similarity}"
        "  {number}. B 第 {b} 行，A 第 {a} 行：{words}，{kind}，相似度 {similarity}";
    shares_of_both(a: impl Display, b: impl Display)
        "  They are {a} % of A and {b} % of B." "  占 A 的 {a} %，占 B 的 {b} %。";
    both_texts() "Texts: [-only in A-] {{+only in B+}}" "文本：[-只在 A-] {{+只在 B+}}";
    normalised() "Normalised" "归一化";
    tokens() "Tokens" "分词";
    and_others(others: NounCount) " … and {others}" " …（另有 {others}）";
    heaviest_features(letter: &str, shown: usize, all: usize)
        "Heaviest features of {letter} ({shown} of {all}): weight, hash, votes from the highest bit"
        "{letter} 权重最高的特征（{shown} / {all}）：权重、哈希、自最高位起的投票";
    too_few_tokens(letter: &str) "{letter} has too few tokens for a feature" "{letter} 的词不足一个特征";
    no_token(letter: &str) "{letter} has no token" "{letter} 没有词";
    empty_text(letter: &str) "{letter} is empty" "{letter} 为空";
    sums_of_votes(rule: &str)
        "Sums of the votes, from the highest bit; {rule}" "投票之和，自最高位起；{rule}";
    ties_fall(hash: &str, feature: &str) "     ties fall as in {hash}, {feature}" "     平局时取 {hash}（{feature}）的位";
    fingerprints_in(blocks: NounCount, distance: u32)
        "Fingerprints in {blocks}: distance {distance}" "指纹，分 {blocks}：海明距离 {distance}";
    minhash_slots(shown: usize, all: usize, equal: usize)
        "MinHash: the first {shown} of {all} slots; equal: {equal} of {all}"
        "MinHash：{all} 个槽中的前 {shown} 个；相等：{equal} / {all}";
    smallest_hashes(shown: usize, all: usize, shared: usize)
        "Bottom-k: smallest hashes of the union ({shown} of {all}); in both texts: {shared} of {all}"
        "Bottom-k：并集中最小的哈希（{shown} / {all}）；两篇共有：{shared} / {all}";
    longest_sentences(letter: &str)
        "Longest sentences of {letter}: characters, hash; = marks sentences that are in both"
        "{letter} 最长的句子：字数、哈希；= 表示两篇都有";
    java_blocks(distance: u32, blocks: NounCount)
        "Values of subByDistance({distance}): {blocks} from the lowest bits on, each with its bits in reverse; = marks equal ones"
        "subByDistance({distance}) 的值：{blocks}，自最低位起，块内位序相反；= 表示相等";
    java_stops(reachable: usize, all: usize, letter: &str)
        "     the class stops behind the highest 1 and lists {reachable} of the {all} of {letter}"
        "     该类在最高的 1 之后停止，只列出 {letter} 的 {all} 个中的 {reachable} 个";
    similarities() "Similarities" "相似度";
    distance_kind() "distance " "距离，";
    estimate_kind() "estimate " "估计，";
    biased_kind() "biased estimate " "有偏估计，";
    they_match(why: &str) "They match: {why}." "匹配：{why}。";
    compared_without_forms()
        "Forms were not compared: dedup learns them from its corpus, and two texts that fill one form with other values do \
         not match; give a table of forms with --forms."
        "没有按模板比较：去重时会从语料中学习模板，同一模板填了不同的值就不匹配；用 --forms 给出模板表。";
    they_do_not_match(why: &str) "They do not match: {why}." "不匹配：{why}。";

    // Summaries of other runs.
    recipe() "recipe" "配方";
    by_recipe(what: &str, recipe: &str) "{what}, recipe {recipe}" "{what}，配方 {recipe}";
    unknown() "unknown" "未知";
    terms() "terms" "词条";
    contaminated() "contaminated" "受污染";
    contaminated_documents(documents: NounCount, findings: NounCount)
        "{documents}, {findings}" "{documents}，{findings}";
    cut() "cut" "截去";
    cut_documents(cut: NounCount, removed: NounCount)
        "parts of {cut}; {removed} nothing left" "{cut}的一部分；{removed}什么也没有留下";
    items() "items" "题目";
    items_found(found: &str, all: &str)
        "{found} of {all} found in the corpus" "{all} 道题中有 {found} 道出现在语料中";
    memory_of_items() "items' memory" "题目内存";
    benchmark_found(name: &str, found: &str, items: NounCount, documents: NounCount)
        "  {name}: {found} of {items}, in {documents}" "  {name}：{items}中的 {found} 道，出现在 {documents}中";
    benchmark_rejected(rows: NounCount) "; {rows}" "；{rows}";
    items_in_documents(items: NounCount, documents: NounCount)
        "{items} in about {documents}" "{items}，语料约 {documents}";
    items_in_unknown_corpus(items: NounCount)
        "{items} in a corpus of unknown size" "{items}，语料大小未知";
    contamination_memory(items: &str, weights: &str, threads: &str, rows: &str, candidates: &str)
        "{items} for items, {weights} for weights, {threads} for threads, {rows} for rows; candidates from {candidates} on go to a temporary file"
        "题目 {items}，权重 {weights}，线程 {threads}，各行 {rows}；候选超过 {candidates} 的部分写入临时文件";
    more_benchmarks(benchmarks: NounCount) "  and {benchmarks}" "  另有 {benchmarks}";
    short_items(items: NounCount)
        "{items} cannot be found, because the question has fewer than three words"
        "{items}无法查找，因为题目不足三个词（四个汉字）";
    boilerplate_question(item: &str, question: &str, documents: NounCount)
        "boilerplate, found only with an answer or choices: '{question}' ({item}), in {documents}"
        "套话，只在答案或选项也出现时才算：“{question}”（{item}），出现在 {documents}中";
    terms_of(terms: &str, documents: NounCount) "{terms} of {documents}" "从 {documents}学到 {terms} 个词条";
    without_fingerprint(number: &str) "{number} too short for a fingerprint" "{number} 篇过短，没有指纹";
    match_only_equal(number: &str)
        "{number} too short for a fingerprint: they match only equal texts" "{number} 篇过短，没有指纹：只与相同的文本匹配";
    sketch() "sketch" "草图";
    simhash_sketch(size: impl Display) "SimHash of {size} bits" "{size} 位 SimHash";
    bottomk_sketch(size: impl Display) "at most {size} smallest hashes" "至多 {size} 个最小的哈希";
    sentence_sketch(size: impl Display) "hashes of the {size} longest sentences" "最长的 {size} 句的哈希";
    minhash_sketch(size: impl Display) "MinHash of {size} slots" "{size} 个槽的 MinHash";
    empty() "empty" "空行";
    empty_match_nothing(rows: &str) "{rows} without text or fingerprint: match nothing" "{rows} 行没有文本或指纹：不与任何行匹配";
    empty_left_out(rows: &str) "{rows} without text or fingerprint: left out" "{rows} 行没有文本或指纹：略过";
    matches() "matches" "匹配";
    matches_of(matches: &str, matched: &str, queries: NounCount)
        "{matches} for {matched} of {queries}" "{matches} 个，属于 {queries}中的 {matched} 个";
    truncated() "truncated" "未列全";
    more_than_listed(queries: NounCount, listed: usize)
        "{queries} with more matches than the {listed} listed" "{queries}的匹配多于列出的 {listed} 个";
    measured_candidates(measure: &str, threshold: impl Display, candidates: &str)
        "{measure} at least {threshold}, candidates by {candidates}" "{measure}不低于 {threshold}，候选由{candidates}产生";
    queried_in(queries: NounCount, time: &str, rows: NounCount)
        "{queries} in {time} against {rows}" "{queries}，用时 {time}，对照 {rows}";
    time_of_queries(opening: &str, each: impl Display)
        " ({opening} to open, then {each} µs per query)" "（打开用 {opening}，每个查询 {each} 微秒）";
    added() "added" "加入";
    removed_in(rows: NounCount, time: &str) "{rows} removed in {time}" "删去 {rows}，用时 {time}";
    not_found() "not found" "未找到";
    index() "index" "索引";
    index_holds(path: &str, rows: NounCount, size: &str) "{path} holds {rows}, {size}" "{path} 有 {rows}，{size}";
    passage_in_document() "document: " "文档：";
    passage_in_source() "source:   " "来源：";
    passage_in_first() "first:  " "前一篇：";
    passage_in_second() "second: " "后一篇：";
    line_of(document: &str, line: impl Display) "{document}, line {line}" "{document} 第 {line} 行";
    shown_passage(number: usize, document: &str, source: &str, words: NounCount, kind: &str, similarity: impl Display)
        "{number}. {document}, from {source}: {words}, {kind}, similarity {similarity}"
        "{number}. {document}，来自 {source}：{words}，{kind}，相似度 {similarity}";
    shown_common_passage(number: usize, document: &str, source: &str, words: NounCount, kind: &str, similarity: impl Display)
        "{number}. {document}, and {source}: {words}, {kind}, similarity {similarity}"
        "{number}. {document}，与 {source} 共有：{words}，{kind}，相似度 {similarity}";
    no_passages(least: NounCount)
        "none of at least {least}; --min-length finds shorter ones" "没有不少于 {least}的段落；--min-length 可找更短的";
    passages_found(number: &str, documents: NounCount, pairs: NounCount)
        "{number} in {documents}, from {pairs}" "{documents}中的 {number} 处，属于 {pairs}";
    common_passages(number: &str, pairs: NounCount, documents: NounCount)
        "{number} that {documents} share, in {pairs}" "{documents}共有 {number} 处，属于 {pairs}";
    repeated_text() "repeated text" "重复的文本";
    repeated_share(share: impl Display)
        "{share} % of the words of all documents: what would go if each passage stood once"
        "占全部文档字词数的 {share} %，即每个段落只留一处时会删去的部分";
    most_shared() "Most shared text" "共有最多的文本";
    shared_by(document: &str, source: &str, words: NounCount, passages: NounCount, share: &str, source_share: &str)
        "  {document} and {source} share {words} in {passages}: {share} % of the first and {source_share} % of the second"
        "  {document} 与 {source} 共有：{passages}，共 {words}，占前者的 {share} %、后者的 {source_share} %";
    unknown_direction()
        "which document took from the other is not known: --time or --against says so"
        "无法判断谁先谁后：可用 --time 或 --against 给出先后或来源";
    direction() "direction" "方向";
    copied_text() "copied text" "抄用的文本";
    copied_share(share: impl Display) "{share} % of the words of all documents" "占全部文档字词数的 {share} %";
    most_copied() "Most copied text" "抄用最多的文本";
    copied_from(document: &str, source: &str, words: NounCount, passages: NounCount, share: &str, source_share: &str)
        "  {document} from {source}: {words} in {passages}, {share} % of the document and {source_share} % of the source"
        "  {document} 来自 {source}：{passages}，共 {words}，占该文档的 {share} %、来源的 {source_share} %";
    in_reworded(words: NounCount)
        "; {words} of it in reworded passages alone" "；其中 {words}仅见于洗稿段落";
    unreadable_files() "unreadable files" "无法读取的文件";
    reported_files(number: &str) "{number} left out, each reported with its reason" "略过 {number} 个，原因已逐一说明";
    guessed_encoding() "encoding" "编码";
    files_in_encoding(files: NounCount, encoding: &str, first: &str)
        "{encoding} by the bytes of {files}: {first}; --encoding says otherwise"
        "按内容判断，{files}读作 {encoding}：{first}；可用 --encoding 另行指定";
    extracted_texts() "extracted texts" "提取的文本";
    new_in(number: &str, directory: impl Display) "{number} new in {directory}" "{directory} 中新增 {number} 篇";
    boilerplate() "boilerplate" "套话";
    common_runs(runs: NounCount, documents: NounCount)
        "{runs} in more than {documents} led to no passage; --max-documents none lifts the limit"
        "{runs}出现在超过 {documents}中，不算段落；--max-documents none 取消此限制";
    boilerplate_example(documents: &str, text: &str)
        "                   in {documents}: {text}" "                   {documents} 篇：{text}";
    base_text() "base text" "公共文本";
    base_left_out(words: NounCount, documents: NounCount, texts: NounCount)
        "{words} of {documents} stand in {texts} that all were given, and count for nothing"
        "{documents}中有 {words}出自公共的 {texts}，不计入结果";
    short_base(texts: NounCount, words: u32, characters: u32, names: &str)
        "nothing is left out of {texts}, shorter than {words} words ({characters} characters): {names}"
        "{texts}不足 {words} 个词（{characters} 个字），没有排除任何内容：{names}";
    common_text() "common text" "多篇共有";
    common_passage(characters: NounCount, having: &str, documents: NounCount, most: u64)
        "a passage of {characters} stands in {having} of {documents}: --base FILE or --max-documents {most} leaves it out"
        "有一段 {characters}的文字出现在 {documents}中的 {having} 篇里：--base FILE 或 --max-documents {most} 可将其排除";
    common_passage_of_sources(characters: NounCount, having: &str, documents: NounCount)
        "a passage of {characters} stands in {having} of {documents}: --base FILE leaves it out"
        "有一段 {characters}的文字出现在 {documents}中的 {having} 篇里：--base FILE 可将其排除";
    planted() "planted" "植入";
    planted_copies(copies: NounCount, documents: NounCount, mark: &str)
        "{copies} of {documents}, with ids that end in {mark} and a number" "{documents}的 {copies}，id 以 {mark} 和数字结尾";
    planted_forms(filled: NounCount, repeats: NounCount)
        "{filled} with the frame of another one and other values, and {repeats} that repeat one of these" "{filled}沿用别篇的框架而值不同，{repeats}重复其中一篇";
    planted_items(items: &str, decoys: &str, documents: NounCount, mark: &str)
        "{items} texts with an item and {decoys} decoys, made of {documents}, with ids that end in {mark} and a number"
        "{items} 篇带题目的文本和 {decoys} 篇诱饵，由 {documents}制成，id 以 {mark} 和数字结尾";
    item_halves(items: &str, indexed: &str, reserved: &str, unused: &str)
        "{indexed} of {items} are indexed, {reserved} are held out, {unused} are left out because their question is known or has no word"
        "{items} 道中，{indexed} 道入索引，{reserved} 道留出，{unused} 道因题干重复或没有词而略去";
    indexed_items() "indexed items" "入索引的题目";
    form_not_applicable(items: &str) "not applicable to {items} items" "不适用于 {items} 道题";
    natural() "natural" "原有";
    natural_pairs(pairs: NounCount)
        "{pairs} of documents that were similar before planting" "植入前已相似的文档：{pairs}";
    near_misses() "near misses" "接近阈值";
    near_pairs(pairs: NounCount) "{pairs} a little below the threshold" "略低于阈值：{pairs}";
    others() "others" "其他";
    other_pairs(siblings: NounCount, unrelated: NounCount)
        "{siblings} of one topic or template, {unrelated} that have hardly anything in common"
        "同一主题或模板：{siblings}；几乎没有共同之处：{unrelated}";
    measured_by() "measured by" "度量方式";
    planting_rule(threshold: impl Display, recipe: &str, seed: u64)
        "threshold {threshold}, recipe {recipe}, seed {seed}" "阈值 {threshold}，配方 {recipe}，种子 {seed}";
    corpus() "corpus" "语料";
    // `status`.
    stage() "stage" "阶段";
    read() "read" "已读";
    documents() "documents" "文档";
    decided() "decided" "已判定";
    complete() "complete" "已完成";
    begun() "begun" "开始于";
    last_step() "last step" "上一步";
    objects() "objects" "对象";
    kept_of_objects(size: &str) "{size} kept until the run is finished" "已保存 {size}，直到运行结束";
    damaged() "damaged" "损坏";
    deciding() "deciding" "判定";
    size_of_input(size: &str) "{size} of input" "{size} 输入";
    steps_of_size(steps: NounCount, size: &str) "{steps}, {size}" "{steps}，{size}";
    time_ago(time: &str) "{time} ago" "{time}前";
    minutes_and_seconds(minutes: u64, seconds: u64) "{minutes} min {seconds} s" "{minutes} 分 {seconds} 秒";
    run_finished(directory: impl Display) "finished; {directory} may be deleted" "已结束；可删除 {directory}";
    stage_of_learning(stage: &str) "learning forms: {stage}" "正在学习模板：{stage}";
    stage_of_process(stage: &str, process: impl Display) "{stage}, by process {process}" "{stage}，进程 {process}";
    stage_without_process(stage: &str)
        "{stage}; no process works on it: continue with --resume" "{stage}；没有进程在运行：用 --resume 继续";
    done_of(done: &str, total: &str, share: impl Display) "{done} of {total} ({share} %)" "{done} / {total}（{share} %）";

    // `store`.
    rows_in_partitions(documents: NounCount, rows: NounCount, partitions: NounCount)
        "{documents} with {rows} in {partitions}" "{documents}，{rows}，{partitions}";
    collection_whole(contents: &str) "{contents}: whole" "{contents}：完整";
    log_is_empty() "the shared log has no records yet" "共享日志还没有记录";
    log_extent(records: NounCount, first: u64, last: u64, megabytes: &str)
        "{records}, from {first} to {last}, {megabytes} MB"
        "{records}，从 {first} 到 {last}，{megabytes} MB";
    log_writer(writer: &str, records: NounCount, format: u32)
        "writer {writer}: {records} of the last 1,024, format {format}"
        "写入者 {writer}：最近 1,024 条中的 {records}，格式 {format}";
    log_replica(replica: &str, version: &str, applied: u64, lag: NounCount, age: &str)
        "replica {replica}: version {version}, applied {applied}, {lag} behind, {age}"
        "副本 {replica}：版本 {version}，已应用到 {applied}，落后 {lag}，{age}";
    log_replica_stopped(replica: &str, reason: &str)
        "replica {replica} has stopped: {reason}" "副本 {replica} 已停下：{reason}";
    log_replica_of_two(replica: &str)
        "replica {replica}: two processes write under this name, so give each a name of its own (--replica)"
        "副本 {replica}：有两个进程用这个名字写入，请给每个进程各自的名字（--replica）";
    log_snapshot(snapshot: &str, megabytes: &str)
        "snapshot {snapshot}: {megabytes} MB" "快照 {snapshot}：{megabytes} MB";
    log_snapshot_incomplete(snapshot: &str, megabytes: &str)
        "snapshot {snapshot}: {megabytes} MB, incomplete" "快照 {snapshot}：{megabytes} MB，不完整";
    log_unreadable(records: NounCount)
        "{records} cannot be read: run `lookalike store log verify`"
        "{records}无法读取：请运行 `lookalike store log verify`";
    log_whole(records: NounCount, first: u64, last: u64)
        "{records}, from {first} to {last}: whole" "{records}，从 {first} 到 {last}：完整";
    log_not_whole(records: NounCount, first: u64, last: u64, kinds: &str)
        "{records}, from {first} to {last}; not whole: {kinds}"
        "{records}，从 {first} 到 {last}；不完整：{kinds}";
    log_damage(record: &str, reason: &str) "{record}: {reason}" "{record}：{reason}";
    log_record_range(first: u64, last: u64) "records {first} to {last}" "记录 {first} 到 {last}";
    log_not_repaired(records: &str, reason: &str)
        "{records}, not repaired: {reason}" "{records}，未能修复：{reason}";
    log_repaired(records: NounCount) "{records} written back" "已写回 {records}";
    log_replaced(records: NounCount)
        "{records} replaced by copies; the earlier ones are below replaced/"
        "{records}已由拷贝取代；原来的在 replaced/ 之下";
    log_pruned(records: NounCount, before: u64)
        "{records} before {before} removed" "已删除 {before} 之前的 {records}";
    log_restorable_from(record: u64, time: impl Display)
        "states from record {record} on, {time}, can be restored"
        "可以恢复记录 {record}（{time}）及之后的状态";
    log_snapshots_removed(names: &str)
        "the rest of interrupted snapshots removed: {names}" "已删除中断的快照的残余：{names}";
    log_exported(entries: NounCount) "{entries} written" "已写出 {entries}";
    log_restored(record: u64, time: impl Display, names: &str)
        "restored as of record {record}, {time}: {names}"
        "已恢复到记录 {record}，{time}：{names}";
    log_without_collections() "no collections" "没有集合";
    log_check_differs(record: &str, collections: &str, writer: &str)
        "behind {record}, the restored collections {collections} are not as the replica '{writer}' had them: compare them with those of other replicas"
        "在{record}之后，恢复的集合 {collections} 与副本 '{writer}' 的不同：请与其他副本的集合比较";
    log_check_unreadable(record: &str, writer: &str)
        "{record} has a comparison of states by the replica '{writer}' that cannot be read"
        "{record}里副本 '{writer}' 的状态比较无法读取";
    log_snapshot_unusable(name: &str, reason: &str)
        "the snapshot '{name}' cannot be used, so an earlier state was the beginning: {reason}"
        "快照 '{name}' 无法使用，改从别的状态开始：{reason}";
    log_checks_differed(number: usize)
        "comparisons of states in the log that differ from the restored one: {number}"
        "日志里与恢复的状态不同的状态比较：{number} 处";
    rows_repaired(contents: &str, rows: NounCount, directory: impl Display)
        "{contents} have been read, and {rows} written to {directory}" "已读 {contents}，向 {directory} 写入 {rows}";
    exported(documents: NounCount) "{documents} exported" "已导出 {documents}";
    imported(documents: NounCount) "{documents} imported" "已导入 {documents}";
    already_there(number: &str) ", {number} already in the collection" "，集合中已有 {number} 篇";
    with_decisions(number: &str) ", decisions: {number}" "，决定 {number} 条";
    bad_rows_skipped(rows: &str) ", {rows} skipped" "，略过 {rows}";

    // `explain`.
    removed_because(id: &str, kept: &str)
        "{id} was removed: it is a near-duplicate of {kept}, which was kept." "{id} 已删除：它与保留的 {kept} 近似重复。";
    not_recorded() "not recorded" "未记录";
    found_by(similarity: &str, method: &str) "{similarity}, found by {method}" "{similarity}，由 {method} 找到";
    similarity() "similarity" "相似度";
    threshold() "threshold" "阈值";
    cluster() "cluster" "簇";
    now() "now" "重新计算";
    both_texts_marked()
        "Both texts: [-only in the kept text-] {{+only in the removed text+}}" "两篇文本：[-只在保留的文本中-] {{+只在删除的文本中+}}";
    record_of_decision()
        "a person has decided that both are the same (--decisions), so the recorded similarity is 1"
        "由人决定两篇相同（--decisions），所以记录的相似度是 1";
    decision_on_pair(label: &str)
        "a person has decided that these two texts are {label}" "由人决定这两篇文本{label}";
    decision_on_form(label: &str)
        "a person has decided that documents of this form are {label}" "由人决定这种模板的文档{label}";
    decision_of_other_recipe(label: &str)
        "a person has decided that these two texts are {label}, but under another recipe, so the run did not apply it"
        "由人决定这两篇文本{label}，但属于其他配方，运行时未采用";
    decision_not_given()
        "give the file of decisions of the run with --decisions to see the decision" "用 --decisions 给出当时的决定文件，可以看到这项决定";
    decision_not_found()
        "no decision in the given files is about these two texts: they have changed since, or the run had another file"
        "给出的文件里没有针对这两篇文本的决定：文本已改动，或当时用的是别的文件";
    decisions_on_text(same: &str, different: &str)
        "A person has decided about its text: the same as {same}, different from {different} others."
        "针对该文本的人的决定：与 {same} 篇相同，与 {different} 篇不同。";
    record_fits(measure: &str)
        "the recorded similarity is that of the present texts ({measure})" "记录的相似度与现在的文本相符（{measure}）";
    record_differs()
        "the recorded similarity is not that of the present texts: they have changed since, or the run had other options (--recipe, --verify, --text, or those for reading)"
        "记录的相似度与现在的文本不符：文本已改动，或当时用了其他选项（--recipe、--verify、--text 或读取选项）";
    form() "form" "模板";
    form_and_slots(name: &str)
        "Form {name}: its frame, and the values of both texts in its slots; * marks those that differ" "模板 {name}：框架，以及两篇文本在各空位里的内容；* 表示不同";
    kept_apart_by_forms(reason: &str)
        "by these forms they do not match: {reason}" "按这些模板不匹配：{reason}";
    by_equal_slots() "share of equal MinHash slots" "相等的 MinHash 槽的比例";
    by_equal_bits() "share of equal SimHash bits" "相等的 SimHash 位的比例";
    by_smallest_hashes() "estimate from the smallest hashes" "由最小哈希估计";
    texts_equal() "the texts are equal after normalisation" "两篇文本在归一化后相同";
    texts_differ_short()
        "the texts differ, and one of them is too short for a feature" "两篇文本不同，其中一篇太短，提取不出特征";
    features_shared(shared: NounCount, kept: usize, removed: usize, jaccard: impl Display, containment: impl Display)
        "{shared} shared, of {kept} in the kept and {removed} in the removed text: Jaccard index {jaccard}, containment {containment}"
        "共有 {shared}，保留的文本有 {kept} 个，删除的文本有 {removed} 个：Jaccard 系数 {jaccard}，包含度 {containment}";
    sequence_similarity(value: impl Display) ", sequence similarity {value}" "，序列相似度 {value}";
    was_not_removed(id: &str, place: &str) "{id} was not removed ({place})." "{id} 未删除（{place}）。";
    is_reference(id: &str, place: &str)
        "{id} was not removed: it is a reference document ({place}), which comes before all others and counts as kept."
        "{id} 未删除：它是对照文档（{place}），排在所有文档之前，视为保留。";
    is_in_library(id: &str, place: &str)
        "{id} was not removed: it is in the library ({place}), because a run kept it; it counts as kept."
        "{id} 未删除：它在库中（{place}），因为某次运行保留了它；它视为保留。";
    no_decisions_without_text()
        "The library stores no texts, so the decisions on its text are not known." "该库不存储文本，因此不知道针对该文本有哪些决定。";
    nothing_removed_for_it()
        "No document was removed as a duplicate of it either. If you expected a match, see what both texts have in common with lookalike compare FILE#ID FILE#ID, try a lower --threshold, or list similar pairs with lookalike pairs --apart, which also names those that forms, titles or numbers keep apart."
        "也没有别的文档因与它重复而被删除。如果您认为应当匹配，请用 lookalike compare FILE#ID FILE#ID 查看两篇的异同，降低 --threshold，或用 lookalike pairs --apart 列出相似的文档对，其中也有因模板、标题或数字而分开的。";
    kept_for_others(documents: &str, named: &str)
        "It was kept, and {documents} removed because of it: {named}\nTo see what they have in common, give the id of one of these."
        "它被保留，因它删除了 {documents}：{named}\n要查看共同之处，请给出其中一个 id。";

    // `--explain-plan`.
    features_are(recipe: &str, id: impl Display, features: &str)
        "{recipe} ({id}): features are {features}" "{recipe}（{id}）：特征是{features}";
    equal() "equal" "相同";
    equal_texts_match() "texts that are equal after normalisation match" "归一化后相同的文本匹配";
    equal_texts_alone() "texts that are equal after normalisation" "归一化后相同的文本";
    joined_documents(features: impl Display, others: impl Display)
        "documents of up to {features} features with those of up to {others}"
        "特征不超过 {features} 个的文档，与不超过 {others} 个的";
    all_documents() "all documents" "全部文档";
    join_finds_all(documents: &str) "{documents}: every pair is found" "{documents}：每一对都找到";
    join_of_any_lengths(documents: &str)
        "{documents}: every pair is found, whatever the lengths of its texts are" "{documents}：每一对都找到，不论两篇各有多长";
    bands_and_rows(bands: impl Display, rows: impl Display, slots: impl Display, equal: impl Display)
        "{bands} bands x {rows} rows of {slots} slots; pairs with fewer than {equal} equal slots are skipped"
        "{slots} 个槽，分 {bands} 段，每段 {rows} 行；相等的槽不足 {equal} 个的文档对略过";
    longer_documents(route: &str) "longer documents: {route}" "更长的文档：{route}";
    fingerprints_share_block(blocks: impl Display, bits: impl Display)
        "fingerprints that share one of {blocks} blocks of their {bits} bits, at any distance"
        "指纹的 {bits} 位分为 {blocks} 块，至少一块相同，海明距离不限";
    fingerprints_within(distance: impl Display, bits: impl Display)
        "fingerprints that differ in at most {distance} of {bits} bits" "指纹的 {bits} 位中至多 {distance} 位不同";
    documents_with_equal_key(equality: &str) "documents with the {equality}" "{equality}的文档";
    same_longest_sentence() "documents with the same longest sentence" "最长的一句相同的文档";
    same_longest_sentences(count: impl Display)
        "documents with the same {count} longest sentences" "最长的 {count} 句相同的文档";
    share_smallest_hashes(keys: impl Display, hashes: impl Display, shared: impl Display)
        "documents that share one of their {keys} smallest hashes; of {hashes} stored, pairs that share fewer than {shared} of the smallest of both are skipped"
        "最小的 {keys} 个哈希中至少一个相同的文档；各存 {hashes} 个，两篇合起来最小的之中相同不足 {shared} 个的文档对略过";
    in_characters() ", in characters," "（以字符计）";
    in_words() ", in words," "（以词计）";
    distance_unverified() "the distance alone, without verification" "只看海明距离，不校验";
    equal_key_unverified(equality: &str) "the {equality}, without verification" "{equality}，不校验";
    share_of_equal_slots() "share of equal slots" "相等的槽的比例";
    estimate_unverified(estimate: &str, threshold: impl Display)
        "{estimate} >= {threshold}, without verification" "{estimate} >= {threshold}，不校验";
    candidates_from(index: &str)
        ", for pairs with a Jaccard index >= {index}" "，只算 Jaccard 系数 >= {index} 的文档对";
    candidates_from_lowest(index: &str)
        ", for pairs with a Jaccard index >= {index}, the lowest that is searched for: edits can leave less"
        "，只算 Jaccard 系数 >= {index} 的文档对；这是查找的下限，编辑可能使系数更低";
    memory() "memory" "内存";
    bytes_of_document(document: impl Display, id: impl Display, sketch: &str)
        "{document} bytes per document, {id} plus its length per id{sketch}"
        "每篇文档 {document} 字节，每个 id {id} 字节加其长度{sketch}";
    bytes_of_longer(bytes: impl Display, features: impl Display)
        ", {bytes} more per document with more than {features} features" "，特征超过 {features} 个的文档再加 {bytes} 字节";
    bytes_of_sketch(bytes: impl Display) ", {bytes} more per sketch" "，每个草图再加 {bytes} 字节";
    predicted_recall(axis: &str) "Predicted recall of pairs, by {axis}" "文档对的预计召回率，按 {axis}";
    threshold_mark() "  <- threshold" "  <- 阈值";
    prediction(documents: NounCount, sampled: &str)
        "Prediction for {documents}, from a sample of {sampled} with different texts"
        "对 {documents}的预测，样本为 {sampled} 篇文本不同的文档";
    pairs_to_compare(pairs: &str, wrong: &str, sampled: &str, sampled_wrong: &str, verified: &str)
        "{pairs} pairs to compare, {wrong} of them false candidates (the sample has {sampled}, and {sampled_wrong} of {verified} compared were false)"
        "要比较 {pairs} 对，其中假候选 {wrong} 对（样本有 {sampled} 对，比较的 {verified} 对中假候选 {sampled_wrong} 对）";
    no_pair_was_compared() "no pair was compared in the sample" "样本中没有比较任何文档对";
    memory_with_buffers(size: &str) "about {size}, plus buffers" "约 {size}，另加缓冲区";
    time() "time" "时间";
    time_to_compare(time: &str, threads: NounCount)
        "about {time} to read and compare all pairs with {threads}, without writing"
        "用 {threads}读取并比较全部文档对约 {time}，不含写出";
    time_to_decide(time: &str, threads: NounCount)
        "about {time} to read and decide with {threads}, without writing" "用 {threads}读取并判定约 {time}，不含写出";
    time_to_learn(time: &str) "{time} of these to learn forms" "其中 {time}用于学习模板";
    bad() "bad" "坏行";
    unusable_of_sample(rows: NounCount)
        "{rows} of the sample cannot be used: a run reports each with its reason" "样本中有 {rows}不能用：运行时会逐一说明原因";
    limited_memory(size: &str) "Memory, with a limit of {size}" "内存，上限 {size}";
    all() "all" "全部";
    memory_of_all(expected: &str, most: &str)
        "about {expected} if everything stays in memory, at most {most}" "全部留在内存约需 {expected}，至多 {most}";
    plan() "plan" "方案";
    plan_in_memory() "in memory, without temporary files" "在内存中，不用临时文件";
    plan_out_of_core(disk: &str, resident: &str)
        "out of core: about {disk} of temporary files; {resident} for rows and buffers stay in memory"
        "使用磁盘：临时文件约 {disk}；行和缓冲区的 {resident} 留在内存";
    memory_of_passages(document: u64, run: u64, spilled: u64, repeated: u64)
        "{document} bytes of memory per document, and {run} per run of words that occurs again; if these do not fit, {spilled} of temporary files per run and {repeated} more if an earlier document has it"
        "每篇文档占 {document} 字节内存，每个重复出现的词串 {run} 字节；放不下时每个词串占临时文件 {spilled} 字节，前面的文档也有的再占 {repeated} 字节";
    least() "least" "最少";

    // `index`.
    segments_rewritten(before: NounCount, after: &str, time: &str)
        "{before} written as {after} in {time}" "{before}重写为 {after} 个，用时 {time}";
    erased() "erased" "抹去";
    before() "before" "之前";
    fingerprints() "fingerprints" "指纹";
    fingerprints_of_bits(count: &str, bits: impl Display) "{count} of {bits} bits" "{count} 个，{bits} 位";
    rows_without_fingerprint(count: &str)
        "{count} of these rows have no fingerprint" "其中 {count} 行没有指纹";
    still_on_disk(count: &str) "{count} that still use disk space" "{count} 行，仍占磁盘空间";
    distance() "distance" "海明距离";
    at_most(value: impl Display) "at most {value}" "至多 {value}";
    ids() "ids" "各行的 id";
    unknown_until_added() "not known until rows are added" "加入行之后才知道";
    stored() "stored" "已存";
    row_numbers() "row numbers" "行号";
    texts() "texts" "文本";
    not_stored() "not stored" "未存";
    searched() "searched" "搜索方式";
    by_distance_threshold_measure()
        "by distance, threshold and measure" "按海明距离、阈值和度量";
    by_distance_alone() "by distance" "按海明距离";
    passages_of_words(words: impl Display)
        "of at least {words} words, with `lookalike passages IN --index`" "不少于 {words} 个词，用 `lookalike passages IN --index` 查找";
    on_disk() "on disk" "磁盘";
    segment() "segment" "分段";
    rows_stand_for(rows: NounCount, documents: NounCount) "{rows}, which stand for {documents}" "{rows}，代表 {documents}";
    counts() "counts" "份数";
    counted_later(rows: &str)
        "of up to {rows} rows begin later: they were added by an earlier version, or by `index add` or `index build`"
        "至多 {rows} 行的份数从加入之后才开始累计：它们由较早的版本、`index add` 或 `index build` 加入";
    files_whole(files: NounCount, size: &str, rows: NounCount, time: &str)
        "{files} ({size}) with {rows} in {time}: whole" "{files}（{size}），{rows}，用时 {time}：完整";
    computed_again(count: &str)
        "{count} computed again from their texts: equal" "从文本重新计算 {count} 个：相同";
    planned_search(count: &str, bits: impl Display, distance: impl Display)
        "{count} fingerprints of {bits} bits, distance at most {distance}" "{count} 个 {bits} 位指纹，海明距离不超过 {distance}";
    probes() "probes" "查桶";
    bytes_each() "bytes" "字节";
    one_look_up() "one look-up" "查一次";
    plan_column()
        "plan: blocks; differing bits allowed in each (keys, layout)" "方案：各块的位数；每块允许不同的位数（键，布局）";
    chosen_plan_mark() "  <- this one" "  <- 选用";
    too_large_mark() "  (too large)" "  （太大）";
    table_orders()
        "Tables: order of the blocks (0 has the lowest bits); the blocks before the bar are equal, with their bits"
        "表：各块的次序（0 是最低位）；竖线前的块相同，后面是它们的位数";
    table_bits(bits: impl Display) "{bits} bits" "{bits} 位";

    // `head`.
    first_of(inputs: NounCount, size: &str)
        ", the first of {inputs}{size} in all" "，共 {inputs}{size}，这是第一个";
    further_part(part: &str) ", {part}" "，{part}";
    fields_of(rows: NounCount)
        "Fields of the first {rows}: rows that have it, type, first value" "前 {rows}的字段（出现的行数、类型、第一个值）";
    name_the_fields()
        "Name the field of the text with --text FIELD, that of the id with --id FIELD" "用 --text FIELD 指定文本字段，用 --id FIELD 指定 id 字段";
    first_rows_under(recipe: &str)
        "The first rows under the recipe {recipe}" "前几行，按配方 {recipe}";
    row_with_id(place: &str, id: &str) "{place}, id {id}" "{place}，id {id}";
    text() "text" "文本";
    token_column() "tokens" "词";
    features() "features" "特征";
    different_features(count: &str) "{count} different" "去重后 {count} 个";
    no_features_too_short() "none: too_short" "没有：词太少";
    no_features_but_symbols() "none: symbols_only" "没有：只有标点和符号";
    no_features_empty() "none: empty" "没有：空文本";
    shown_text(text: &str, characters: NounCount) "{text}, {characters}" "{text}，{characters}";
    shown_tokens(tokens: &str, count: &str) "{tokens}, {count}" "{tokens}，{count} 个";

    // Fingerprints by hand.
    features_with_votes(letter: &str)
        "Features of {letter}: weight, hash, votes from the highest bit" "{letter} 的特征：权重、哈希、自最高位起的投票";
    differ_at_most(bits: NounCount, distance: u32)
        "they differ in {bits}, at most the distance {distance}" "相差 {bits}，不超过海明距离 {distance}";
    differ_more(bits: NounCount, distance: u32)
        "they differ in {bits}, more than the distance {distance}" "相差 {bits}，超过海明距离 {distance}";
    fingerprints_heading() "Fingerprints" "指纹";
    permutation_table(number: usize)
        "Permutation {number}: 1 where a document has the shingle" "排列 {number}：文档有该片段处为 1";
    minimum() "minimum" "最小值";
    equal_minima_of_pairs()
        "Pairs: equal minima of all permutations, as an estimate of Jaccard; Jaccard" "各对：所有排列中相等的最小值，作为 Jaccard 系数的估计；Jaccard 系数";
    some_of_all(some: usize, all: usize) "{some} of {all}" "{some} / {all}";

    // `eval` and `tune`.
    labelled_pairs(texts: NounCount, similar: NounCount, different: &str)
        "{texts}: {similar} similar, {different} not" "{texts}：相似 {similar}，不相似 {different} 对";
    ungraded_pairs(number: &str)
        "; {number} between the two grades left out" "；略去介于两个等级之间的 {number} 对";
    repeated_pairs(rows: NounCount) "; {rows} a pair that counts once" "；{rows}，同一对只计一次";
    contradictory_pairs(pairs: NounCount)
        "; {pairs} contradictory labels (--contradictory)" "；{pairs}（--contradictory）";
    no_intervals()
        "no intervals: all texts are connected by pairs, so there is only one unit to resample"
        "没有区间：全部文本由文档对连成一体，只有一个可重抽样的单元";
    intervals_of(share: impl Display, resamples: &str, units: NounCount)
        "intervals: {share} % of {resamples} resamples of {units} that pairs connect"
        "区间：对由文档对相连的 {units}重抽样 {resamples} 次的 {share} %";
    figure_found() "found" "找到";
    figure_wrong() "wrong" "误认";
    figure_missed() "missed" "漏掉";
    figure_lost() "lost" "丢失";
    figure_distance() "distance" "距离";
    figure_pairs() "pairs" "对数";
    figure_removes() "removes" "删除";
    best_mark() "  <- best" "  <- 最佳";
    no_plan() "no plan" "无方案";
    by_class(class: &str) "by {class}" "按{class}";
    by_class_at(class: &str, axis: &str, cut: &str) "by {class} at {axis} {cut}" "按{class}，{axis} {cut}";
    class_length() "length" "长度";
    class_script() "script" "文字";
    class_kind() "kind" "类别";
    clusters_compared(documents: NounCount, predicted: NounCount, truth: &str, exact: &str)
        "{documents}; {predicted} predicted, {truth} true (with two or more documents); {exact} the same in both"
        "{documents}；预测 {predicted}，真实 {truth} 个（含两篇以上文档）；两者相同 {exact} 个";
    pairwise() "pairwise" "按对";
    b_cubed() "B-cubed" "B-cubed";
    exact_sets() "exact sets" "相同集合";
    passages_detected(found: NounCount, truth: &str, detected: &str)
        "{found} found, {truth} true, of which {detected} are detected" "找到 {found}，真实 {truth} 处，其中检出 {detected} 处";
    granularity() "granularity" "粒度";
    over_all_characters(value: &str) "  ({value} over all characters)" "  （按全部字符为 {value}）";
    contamination_planted(items: &str, decoys: &str)
        "{items} documents with a planted item, {decoys} with a decoy" "{items} 篇文档植入了题目，{decoys} 篇植入了诱饵";
    figure_planted() "planted" "植入数";
    figure_short() "short" "短题";
    figure_share() "share" "比例";
    form_of_item() "form" "形式";
    decoy() "decoy" "诱饵";
    contamination_precision(value: &str, right: &str, wrong: &str)
        "{value} ({right} right findings, {wrong} wrong)" "{value}（正确 {right} 处，错误 {wrong} 处）";
    findings_in_hosts(number: &str)
        "{number} findings stand in the original documents too; they do not count"
        "{number} 处在原文档中也有，不计";
    findings_elsewhere(number: &str)
        "{number} findings are in documents that were not planted; they may be real and do not count"
        "{number} 处在未植入的文档中，可能是真的，不计";
    halves(similar: &str, different: &str, held: &str, held_different: &str)
        "half for choosing: {similar} similar, {different} not; half held back: {held} similar, {held_different} not"
        "用于选择的一半：相似 {similar} 对，不相似 {different} 对；留出的一半：相似 {held} 对，不相似 {held_different} 对";
    settings_tried(number: usize, goal: &str)
        "{number} settings tried; goal: {goal}" "尝试了 {number} 组设置；目标：{goal}";
    half_for_choosing() "On the half for choosing" "在用于选择的一半";
    chosen_mark() "  <- chosen" "  <- 选用";
    removes_of_all(documents: NounCount)
        "removes: the share of {documents} that dedup removes with the setting." "删除：dedup 以该设置从 {documents}中删除的比例。";
    removes_of_sample(sample: &str, documents: NounCount)
        "removes: the share that dedup removes of a sample of {sample} of {documents}; of all it removes more."
        "删除：dedup 从 {documents}中抽取的 {sample} 篇里删除的比例；从全部中会删除更多。";
    best_without_resamples()
        "The chosen setting is the best; without resamples, settings that are as good are unknown."
        "选用的设置是最佳的；没有重抽样，无法知道哪些设置与它一样好。";
    as_good_as_best(settings: NounCount)
        "{settings} are as good as the best, because it does not beat them in 95 of 100 resamples: the first of them in the order of preference is chosen."
        "有 {settings}与最佳的一样好，因为 100 次重抽样中它未在 95 次胜出：选用其中按偏好顺序最先的。";
    best_of_as_good(settings: NounCount)
        "The chosen setting is the best, and the first of {settings} that are as good." "选用的设置是最佳的，也是同样好的 {settings}中最先的。";
    best_of_all()
        "The chosen setting beats every other one in 95 of 100 resamples." "在 100 次重抽样中，选用的设置有 95 次胜过其他每一组。";
    held_back() "Held back" "留出";
    chosen() "chosen" "选用";
    runner_up() "runner-up" "次选";
    untuned() "untuned" "原设置";
    runner_up_is(name: &str, cut: &str) "  runner-up: {name} {cut}" "  次选：{name} {cut}";
    labels() "labels" "标注";
}

/// Returns the Chinese of all messages, to check their typography.
#[cfg(test)]
pub(super) fn chinese_texts() -> Vec<&'static str> {
    TEMPLATES.iter().map(|(.., chinese)| *chinese).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the arguments in a template, each once.
    fn arguments(template: &str) -> Vec<&str> {
        let plain = template.split("{{").flat_map(|piece| piece.split("}}"));
        let named = plain.flat_map(|field| field.split('{').skip(1));
        let names = named.filter_map(|parts| parts.split_once('}'));
        let mut names: Vec<_> = names.map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Every message has the same arguments in both languages, and its Chinese is Chinese.
    #[test]
    fn catalogue_is_complete() {
        assert!(TEMPLATES.len() > 100);
        let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        for (name, english, chinese) in TEMPLATES {
            assert_eq!(arguments(english), arguments(chinese), "{name}");
            assert!(!english.contains(is_han), "{name}: {english}");
            let words = chinese.split(|c: char| !c.is_ascii_alphabetic() && c != '-');
            let known = [
                "A",
                "B",
                "MB",
                "s",
                "id",
                "MinHash",
                "SimHash",
                "Jaccard",
                "Bottom-k",
                "bottom-k",
                "Levenshtein",
                "Indel",
                "B-cubed",
                "FILE",
            ];
            let options = [
                "--json",
                "--keep",
                "--all",
                "--threshold",
                "--removed",
                "--dry-run",
                "--min-length",
                "--max-documents",
                "--base",
                "--resume",
                "--recipe",
                "--verify",
                "--text",
                "--contradictory",
                "--rejected",
                "--id-row",
                "--strict",
                "--format",
                "--corpus",
                "--id",
                "--index",
                "--extracted",
                "--forms",
                "--audit",
                "--time",
                "--encoding",
                "--against",
                "--extend",
                "--apart",
                "--decisions",
                "--replica",
                "--folder",
                "--help",
                "-o",
            ];
            let names = [
                "lookalike",
                "explain",
                "index",
                "add",
                "build",
                "remove",
                "none",
                "subByDistance",
                "dedup",
                "--drop-all",
                "learn",
                "forms",
                "TABLE",
                "pairs",
                "plant",
                "source",
                "row",
                "passages",
                "IN",
                "FIELD",
                "Word",
                "PDF",
                "HTML",
                "Markdown",
                "store",
                "log",
                "verify",
                "replaced",
                "MCP",
                "head",
                "unique",
                "jsonl",
                "compare",
                "ID",
            ];
            let given = arguments(chinese);
            let words = words.map(|word| word.trim_end_matches('-'));
            for word in words.filter(|word| word.chars().any(|c| c.is_ascii_alphabetic())) {
                let is_known = [&known[..], &options, &names, &given]
                    .iter()
                    .any(|list| list.contains(&word));
                assert!(
                    is_known || word.contains('_'),
                    "{name}: {word} in {chinese}"
                );
            }
        }
        let mut names_of_texts = std::collections::BTreeMap::new();
        for (name, english, chinese) in TEMPLATES {
            let earlier = names_of_texts.insert((english, chinese), name);
            assert_eq!(earlier, None, "{name} says the same");
        }
    }
}

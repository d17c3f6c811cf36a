/**
 * Problems of the service in Chinese. The service answers in English by contract, so the page finds the details that people
 * meet most by their patterns; `{}` stands for a number or a name. Another detail stays English, behind the title of its code.
 */
import { translate, type PhraseList } from "./phrases";

/** Titles by the code of a problem. */
const titles: Readonly<Record<string, string>> = {
  bad_request: "请求无法处理",
  bad_json: "JSON 不合法，或缺少字段",
  bad_body: "无法读取请求体",
  unauthenticated: "需要密钥",
  forbidden: "密钥没有此权限",
  no_such_place: "没有这个接口",
  no_collection: "没有这个集合",
  no_snapshot: "没有这个快照",
  no_alias: "没有这个别名",
  no_recipe: "没有这个配方",
  no_document: "没有这篇文档",
  no_decision: "没有这项决定",
  no_cluster: "没有这个簇",
  method_not_allowed: "接口不支持这种方法",
  too_slow: "请求没有及时送达",
  id_conflict: "此编号已有不同的内容",
  collection_conflict: "名称已用于另一个集合或别名",
  recipe_conflict: "配方正在使用，或配方太多",
  snapshot_conflict: "名称已用于另一个快照",
  too_large: "文档或请求超过上限",
  unsupported_type: "不支持这种类型的请求体",
  unsupported_encoding: "不支持请求体的这种编码",
  wrong_host: "请求的 Host 不属于此服务",
  bad_name: "名称不合法",
  bad_settings: "设置不合法",
  bad_document: "文档不合法",
  bad_decision: "决定不合法",
  too_costly: "请求的计算量太大",
  busy: "队列已满",
  too_many_requests: "请求太多",
  damaged: "文件已损坏",
  disk: "磁盘操作失败",
  log_unavailable: "无法访问共享日志",
  log_stopped: "副本已停止",
  catching_up: "副本正在追上共享日志",
  behind: "副本尚未应用到所要的位置",
  passages_not_ready: "正在为集合的段落建立索引",
  not_ready: "集合正在打开",
  stopped: "集合不再接受写入",
  deleting: "集合正在删除",
  stopping: "服务正在停止",
  head_too_large: "请求头超过上限",
  passage_memory: "段落索引超出其内存",
  disk_full: "磁盘将满",
};

/** Details by their English patterns. */
const details: PhraseList = [
  ["the service has no directory for snapshots: start it with --snapshots PLACE", "服务没有设置快照目录，启动时请加 --snapshots 目录"],
  ["the collection '{}' has no snapshot '{}'", "集合 '{}' 没有快照 '{}'"],
  ["the snapshot '{}' exists already: use another name", "已有快照 '{}'：请换一个名称"],
  ["the snapshot '{}' is being created, deleted or restored: try again later", "快照 '{}' 正在创建、删除或恢复：请稍后再试"],
  ["the name '{}' is one that --snapshot-every gives, and the schedule would delete the snapshot: use another name", "名称 '{}' 与 --snapshot-every 所用的名称相同，快照会被定时删除：请换一个名称"],
  ["'{}' is not a valid name: a name has 1 to {} of the letters a to z, digits, - and _, and begins with a letter or digit", "'{}' 不是合法的名称：名称为 1 至 {} 个小写字母、数字、- 或 _，以字母或数字开头"],
  ["'{}' is not a valid name, because a file of the service has it", "'{}' 不能用作名称：服务有同名的文件"],
  ["there is no collection '{}'", "没有集合 '{}'"],
  ["the collection '{}' exists with other settings: {}", "已有集合 '{}'，设置不同：{}"],
  ["the collection '{}' has the alias '{}': switch or remove the alias first", "集合 '{}' 有别名 '{}'：请先切换或移除别名"],
  ["the collection '{}' is still being opened", "集合 '{}' 仍在打开"],
  ["the collection '{}' is being deleted", "集合 '{}' 正在删除"],
  ["the collection '{}' could not be opened: {}", "无法打开集合 '{}'：{}"],
  ["'{}' is an alias of the collection '{}': use the name of a collection, or remove the alias first", "'{}' 是集合 '{}' 的别名：请用集合的名称，或先移除别名"],
  ["'{}' is a collection: an alias needs another name", "'{}' 是集合：请为别名换一个名称"],
  ["there would be {} aliases, and the limit is {}: remove some first", "别名将有 {} 个，上限为 {}：请先移除一些"],
  ["there is no document '{}'", "没有文档 '{}'"],
  ["there is no uploaded recipe '{}': GET /v1/recipes lists them", "没有上传的配方 '{}'"],
  ["'{}' is the name of a built-in recipe: use another name", "'{}' 是内置配方的名称：请换一个名称"],
  ["the recipe '{}' is used by the collections {}: delete them first", "配方 '{}' 正由集合 {} 使用：请先删除这些集合"],
  ["the recipe '{}' cannot be used: {}; upload it again", "配方 '{}' 不能用：{}；请重新上传"],
  ["the file '{}' is sent, but the recipe does not name it: leave it out, or name it in the recipe", "配方没有列出文件 '{}'：请不选它，或在配方中列出"],
  ["the file '{}' is sent twice", "文件 '{}' 选择了两次"],
  ["the field `{}` cannot change, because the verdicts so far depend on it: make a new collection and switch an alias", "设置 `{}` 不能更改，因为已有的判定取决于它：请新建集合，再切换别名"],
  ["the field `window` is null: a window cannot be removed; make a new collection and switch an alias", "窗口不能移除：请新建集合，再切换别名"],
  ["the call needs a key: send Authorization: Bearer KEY", "需要密钥"],
  ["the key is not one of the accepted keys", "此密钥不在服务接受的密钥之中"],
  ["the call needs a key with the role {}, and the key has the role {}", "需要 {} 角色的密钥，而此密钥的角色是 {}"],
  ["the key is limited to the collections {}: {}", "此密钥只能用于集合 {}：{}"],
  ["'{}' is not one of them", "不含 '{}'"],
  ["the call concerns the whole service", "而此操作针对整个服务"],
  ["document '{}' exists with other content, as number {}", "已有文档 '{}'，内容不同，序号 {}"],
  ["the texts have {} bytes, more than the limit of {} per request", "文本共 {} 字节，超过每个请求的上限 {}"],
  ["the body has {} bytes, more than the limit of {}", "请求体有 {} 字节，超过上限 {}"],
];

/** A problem in the language of a reader. */
export interface SaidProblem {
  /** The title of the problem, which stands before a detail that stays English. */
  title: string | null;
  detail: string;
  isTranslated: boolean;
}

/** Returns what is said in Chinese about a problem. */
export function sayProblemInChinese(code: string, detail: string): SaidProblem {
  const chinese = translate(detail, details);
  if (chinese !== null) return { title: null, detail: chinese, isTranslated: true };
  return { title: titles[code] ?? null, detail, isTranslated: false };
}

/** All codes and patterns, for tests. */
export const knownProblems = { titles, details };

package language

// chineseWords translates the words of fixed sets: an effect, a kind, a place, a state.
func chineseWords() map[string]string {
	return map[string]string{
		// Ends of a turn.
		"end_turn": "正常结束", "max_tokens": "达到 token 上限", "max_turn_requests": "达到请求次数上限",
		"refusal": "智能体拒绝继续", "cancelled": "已取消",

		// Types of events without a title.
		"result": "结果", "reply failed": "回复失败", "lapsed": "未答复", "resolved": "提问结束",
		"renamed": "已改名", "selected": "已选中", "deleted": "已删除", "message finished": "消息已处理",
		"contact session": "联系人的会话",

		// Effects and kinds of options.
		"allow": "允许", "deny": "拒绝", "ask": "询问", "allow_once": "允许一次", "allow_always": "始终允许",
		"reject_once": "拒绝一次", "reject_always": "始终拒绝", "accept": "接受", "decline": "不提供",
		"cancel": "取消",

		// Kinds of tools.
		"read": "读取", "edit": "编辑", "delete": "删除", "move": "移动", "search": "搜索",
		"execute": "执行", "think": "思考", "fetch": "获取", "switch_mode": "切换模式", "other": "其他",

		// Ends of a message.
		"answered": "已回答", "failed": "失败", "unknown": "不明", "done": "已完成", "refused": "已拒绝",
		"withdrawn": "已撤回",

		// Pieces of an answer that are not text.
		"image": "图片", "sound": "声音", "file": "文件", "link": "链接", "block": "内容",
		", nothing in it can be read": "，其中没有可读的内容",

		// Places and deciders.
		"chat": "聊天", "editor": "编辑器", "team": "团队", "send": "perlica send", "person": "人",
		"user": "用户", "client": "客户端", "rule": "规则", "mode": "模式", "tier": "级别",
		"standing": "长期许可", "nobody": "无人", "policy": "规则", "timeout": "超时",
		"run": "运行", "terminated": "桥接程序",
		"interrupted": "中断",

		// Reasons against a connection.
		"not listed": "不在列表中", "port not listed": "端口不在列表中", "address": "是地址而不是名称",
		"private address": "内部地址", "unreachable": "无法连接", "malformed": "请求格式错误",

		// States of a flow run and of its steps.
		"waiting": "等待中", "running": "进行中", "asked": "等待答复", "skipped": "已跳过", "stopped": "已停下",
		"handed_over": "已交给团队",

		// States of an agent.
		"installed": "已安装", "missing": "未安装", "disabled": "已停用",
	}
}

package language

// chineseRecord translates the English sentences of the record.
func chineseRecord() *Recorded {
	return recorded(map[string]map[string]string{
		"lapse": chineseLapses(),
	}, map[string]string{
		// The end of a turn, and faults of a command.
		"no outcome on record yet": "还没有结果记录",
		"failed: %s":               "失败：%s", "outcome unknown: %s": "结果不明：%s", "end_turn": "正常结束", "max_tokens": "达到 token 上限",
		"max_turn_requests": "达到请求次数上限", "refusal": "智能体拒绝继续", "cancelled": "已取消",
	}, chineseFaults(), map[string]string{
		// Titles of the lines of /log.
		"the input": "输入", "queued": "已排队", "taken back": "已撤回", "history cut": "历史已截断", "the call is on record": "调用已记录",
		"the answer": "回答", "provider error": "智能体出错", "outcome unknown": "结果不明", "in all": "总计", "stopped": "已停止",
		"refused": "已拒绝", "result": "结果", "over the limit": "超出上限", "timeout": "超时", "the agent is ready": "智能体已就绪", "the agent's sandbox": "智能体的沙箱",
		"the agent's session": "智能体的会话", "told the agent": "已告知智能体", "reply failed": "回复失败", "a question": "提问",
		"an answer to a question": "对提问的回答", "a late or wrong answer": "迟到或无效的回答", "lapsed": "未答复", "resolved": "提问结束",
		"policy": "规则", "ran unasked": "未询问就运行", "remembered": "已记住", "no longer remembered": "不再记住", "a new session": "新会话",
		"chosen": "已选择", "renamed": "已改名", "selected": "已选中", "deleted": "已删除", "message finished": "消息已处理",
		"contact session": "联系人的会话", "judged": "已判定", "a line that is no message": "不是消息的一行",

		// Texts of the lines of /log.
		"payload withheld (%d bytes)": "内容未保留（%d 字节）",
		"%s (%s) to %s: %s":           "%s（%s）发给 %s：%s",
		"by %s":                       "由 %s",
		"by %s: %s":                   "由 %s：%s",
		"%s of history kept, %d left out; the budget is %d tokens": "保留了 %s历史，略去 %d 轮；上限为 %d 个 token",
		"; %s no longer on record":                                 "；%s已不在记录中",
		"%d turn":                                                  "%d 轮", "%d turns": "%d 轮", "%d byte": "%d 字节", "%d bytes": "%d 字节", "%d call": "%d 次调用", "%d calls": "%d 次调用",
		"%d question": "%d 个提问", "%d questions": "%d 个提问", "%d request": "%d 个请求", "%d requests": "%d 个请求", "%d ms": "%d 毫秒",
		"%s is about to get a prompt, %s on the wire":           "%s 将收到 %s的输入",
		"%s; nothing was asked, refused or done without asking": "%s；没有提问、拒绝或未经询问的操作",
		"%s after %s: %s": "%s，用时 %s：%s",
		"no stop reason":  "没有说明结束原因", "end_turn": "正常结束", "max_tokens": "达到 token 上限", "max_turn_requests": "达到请求次数上限", "refusal": "智能体拒绝继续", "cancelled": "已取消",
		"%s, %s asked (%d allowed, %d denied, %d unanswered), %s refused, %d ran without asking": "%s，%s（允许 %d，拒绝 %d，未答复 %d），拒绝了 %s，未询问 %d",
		", %d freed by a yes for good": "，%d 个由“始终允许”放行",
		"%s: nothing runs here":        "%s：这里不运行任何东西",
		"%s was not carried out":       "没有执行 %s",
		"a line of %s":                 "一行有 %s",
		"closing it failed: %s":        "关闭失败：%s",
		"closed":                       "已关闭", "ended with its process": "随进程结束",
		"%s could not leave: %s": "%s 未能送出：%s",
		"use a tool":             "使用一个工具", "a tool": "一个工具",
		"%s, which does not count: %s": "%s，无效：%s",
		", not sent":                   "，未送出",
		"allow":                        "允许", "deny": "拒绝", "ask": "询问",
		"allow_once": "允许一次", "allow_always": "始终允许", "reject_once": "拒绝一次", "reject_always": "始终拒绝",
		"of no kind": "没有类型", "read": "读取", "edit": "编辑", "delete": "删除", "move": "移动", "search": "搜索", "execute": "执行", "think": "思考", "fetch": "获取",
		"switch_mode": "切换模式", "other": "其他",
		", question %s":  "，提问 %s",
		"%s %s, said %s": "%s：%s，由 %s 决定",
		"%s by %s":       "%s，由 %s 收回",
		"%s with %s":     "%s，智能体 %s",
		"with %s":        "智能体 %s", "as it is": "保持不变", "mode %s": "模式 %s", "%s, by %s": "%s，由 %s 提供", "model %s": "模型 %s", "strategy %s": "方式 %s",
		"to %s": "改为 %s", "is the current one": "现在是当前会话", "is off the lists": "已移出列表",
		"nothing else is known": "其余不知道", "; noticed by a later start": "；由之后的启动发现",
		"%s (%s), by %s":                 "%s（%s），由 %s",
		"%s says that the prompt %s: %s": "%s 认定输入%s：%s", "was not sent": "没有发出", "was sent": "已经发出",
		"answered": "已回答", "failed": "失败", "unknown": "不明", "done": "已完成", "withdrawn": "已撤回",
		"image": "图片", "sound": "声音", "file": "文件", "link": "链接", "block": "内容", ", nothing in it can be read": "，其中没有可读的内容",
		"chat": "聊天", "editor": "编辑器", "team": "团队", "send": "perlica send", "accept": "接受", "decline": "不提供", "cancel": "取消", "person": "人", "user": "用户", "client": "客户端", "rule": "规则", "mode": "模式", "tier": "级别", "standing": "长期许可", "nobody": "无人", "run": "运行",
		"terminated": "桥接程序", "interrupted": "中断", "installed": "已安装", "missing": "未安装", "disabled": "已停用",
	})
}

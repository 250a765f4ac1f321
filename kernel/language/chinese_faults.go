package language

// chineseLapses translates the reasons why a question ended without an answer.
func chineseLapses() map[string]string {
	return map[string]string{
		"nobody_to_ask": "没有人可以询问", "time_is_up": "等待超时", "turn_cancelled": "这一轮已取消",
		"agent_gone": "智能体已退出", "run_ended": "运行已结束", "withdrawn_by_agent": "智能体撤回了问题",
		"dismissed_by_client": "智能体自己的客户端关闭了它", "asker_died": "提问的进程已终止",
	}
}

// chineseFaults translates the faults in HTTP answers, the findings about a log, the reasons why an answer is missing,
// and the warnings of a turn.
func chineseFaults() map[string]string {
	return map[string]string{
		// Titles of problems in HTTP answers.
		"that is not one of the options: %q":                     "没有这个选项：%s",
		`this needs the right "admin", but for one's own device`: `除非是自己的设备，这需要权限“admin”`,

		// Inputs.
		"the event log was not made here and is not trusted: %s: %s": "事件日志不是在这里建立的，不受信任：%s：%s",

		// Questions, devices and teams.

		// Logs.
		"the disk is full: %s":                                                        "磁盘已满：%s",
		"the event log cannot be written: %s":                                         "事件日志无法写入：%s",
		"another process has locked the event log: %s":                                "另一个进程锁住了事件日志：%s",
		"the disk reports an error: %s":                                               "磁盘报告出错：%s",
		"the event log is damaged: %s":                                                "事件日志已损坏：%s",
		"the event log was moved, deleted or changed by others while it was open: %s": "事件日志在打开期间被移走、删除或被别的程序更改：%s",
		"not an event log of Perlica: %s":                                             "不是 Perlica 的事件日志：%s",
		"the disk that the event log lies on gives no locks: %s":                      "事件日志所在的磁盘不支持锁：%s",
		"too many files are open: %s":                                                 "打开的文件过多：%s",
		"eventlog: view sessions: {why}":                                              "会话的视图：%s",
		"eventlog: view search: {why}":                                                "搜索的视图：%s",

		// Reasons why an answer is missing.
		"the agent has gone":                                                        "智能体已退出",
		"the agent does not read its input":                                         "智能体不读取输入",
		"the agent did not answer in time":                                          "智能体没有及时回答",
		"the agent wants a login":                                                   "智能体要求登录",
		"the agent broke the protocol":                                              "智能体违反了协议",
		"the record could not be written":                                           "记录无法写入",
		"a second session/prompt of one run was refused":                            "已拒绝同一轮的第二次“session/prompt”",
		"Perlica ended the agent":                                                   "Perlica 结束了智能体",
		"Perlica killed the agent":                                                  "Perlica 强行结束了智能体",
		"the agent sent a line of %d bytes; the limit is %d":                        "智能体发来一行 %d 字节；上限是 %d",
		"an answer that is not of the protocol's form: %s":                          "回答不符合协议的格式：%s",
		"an error that is not of JSON-RPC's form: %s":                               "错误不符合 JSON-RPC 的格式：%s",
		"an error without a message":                                                "没有说明的错误",
		"the record could not be written: {why}":                                    "记录无法写入：%s",
		"the agent closed its output":                                               "智能体关闭了输出",
		"the agent closed its input":                                                "智能体关闭了输入",
		"reading from the agent: %s":                                                "读取智能体的输出：%s",
		"the agent was ended by %s":                                                 "智能体被 %s 结束",
		"the agent exited with code %d":                                             "智能体以代码 %d 退出",
		"{why}; its last words: %s":                                                 "%s；它最后的话：%s",
		"two open requests of the client have the id %s":                            "客户端有两个未完成的请求使用标识 %s",
		"the agent did not answer within %s":                                        "智能体没有在 %s 内回答",
		"the agent speaks version %s of the protocol, Perlica speaks version %d":    "智能体使用协议版本 %s，Perlica 使用版本 %d",
		"the agent opened a session without an id":                                  "智能体打开的会话没有标识",
		"the agent has stopped reading its input":                                   "智能体不再读取输入",
		"Perlica ended before the outcome was known":                                "结果未明之前 Perlica 就已终止",
		"the event log could not be written, and the outcome was not recorded":      "事件日志无法写入，结果没有记录",
		"provider: start %s: {why}":                                                 "启动 %s：%s",
		"command not found":                                                         "找不到命令",
		"no such command on PATH":                                                   "在 PATH 里找不到这个命令",
		"the agent's answer is not one line with one message, each member once: %q": "智能体的回答不是单独一行里的一条消息，或其中的成员重复：%q",
		"command not found: %s":                                                     "找不到命令：%s",
		"not executable":                                                            "不可执行",
		"not executable: %s":                                                        "不可执行：%s",
		"no such working directory: %s":                                             "没有这个工作目录：%s",

		// Warnings of a turn.

		// Findings about a log.
		"the payload of event %d does not have its recorded hash": "事件 %d 的内容与所记录的哈希不符",
		"the header of event %d does not have its recorded hash":  "事件 %d 的头部与所记录的哈希不符",
		"DAMAGED: {why}; perlica log verify":                      "已损坏：%s；请运行“perlica log verify”",
	}
}

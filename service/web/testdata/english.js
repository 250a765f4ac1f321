(allowed) => {
	allowed.sort((a, b) => b.length - a.length);
	// These elements hold texts of agents and people, which are in any language: words, code, names, paths, and words to type.
	const theirs = 'code, pre, .said, .words, .markdown, .agent, .agent-label, .word, .files, .mono, ' +
		'select[name=provider], select[name=project], select[name=language], select[name=model], select[name=mode]';
	// Most text in these elements is Perlica's, although they match theirs: errors, warnings, findings, the reason of a
	// question, and the details of a step. The test knows the other words in them.
	const ours = '.alert .said, p.said, .remark .said, .story > li:not(.input) > .words, .g-why .agent, .g-tier .own';
	const found = new Set();
	const look = (text, where) => {
		for (const word of allowed) text = text.split(word).join(' ');
		if (/[A-Za-z][A-Za-z'’-]/.test(text)) found.add(where + ': ' + text.trim().replace(/\s+/g, ' ').slice(0, 120));
	};
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n = walk.nextNode(); n; n = walk.nextNode()) {
		const el = n.parentElement;
		if (/^(SCRIPT|STYLE|TEMPLATE|NOSCRIPT)$/.test(el.tagName) || el.closest(theirs) && !el.closest(ours)) continue;
		look(n.data.replace(/^这个词是 \w+$/, ''), el.tagName.toLowerCase() + '.' + el.className);
	}
	for (const a of ['aria-label', 'placeholder', 'title', 'alt']) {
		for (const el of document.body.querySelectorAll('[' + a + ']')) {
			if (!el.matches('.said')) look(el.getAttribute(a), el.tagName.toLowerCase() + '[' + a + ']');
		}
	}
	look(document.title, 'title');
	return [...found];
}

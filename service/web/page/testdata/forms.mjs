// This script prints each text that is not laid out as expected.
import './document.mjs';
const {markdown, Flow} = await import('./markdown.js');
const got = (text) => markdown(text).html.replace(/^<div>|<\/div>$/g, '');
const p = (s) => '<p>' + s + '</p>';
const cases = {
	'a *b* **c** ~~d~~ `e`': p('a <em>b</em> <strong>c</strong> <del>d</del> <code>e</code>'),
	'***a***': p('<em><strong>a</strong></em>'),
	'***a** b*': p('<em><strong>a</strong> b</em>'),
	'**a *b***': p('<strong>a <em>b</em></strong>'),
	'**a*b**': p('<strong>a*b</strong>'),
	'2 * 3 * 4, a_b_c, __init__.py, _x_': p('2 * 3 * 4, a_b_c, <strong>init</strong>.py, <em>x</em>'),
	'**bold:**text': p('<strong>bold:</strong>text'),
	'*a **b** c*': p('<em>a <strong>b</strong> c</em>'),
	'*a\n*b': p('*a\n*b'),
	'\\*a\\* \\[b](c)': p('*a* [b](c)'),
	'``a ` b`` `` ` `` `a': p('<code>a ` b</code> <code>`</code> `a'),
	'one of [`a`, `b`, `c`] and': p('one of [<code>a</code>, <code>b</code>, <code>c</code>] and'),
	'[a](https://x.y/z)': p('<a https://x.y/z>a</a><span> (x.y)</span>'),
	'[a](https://x.y/z_(b)) c': p('<a https://x.y/z_(b)>a</a><span> (x.y)</span> c'),
	'[a](<https://x.y/z> "t") [b](https://x.y (t))': p('<a https://x.y/z>a</a><span> (x.y)</span> <a https://x.y/>b</a><span> (x.y)</span>'),
	'*[a*b](https://x.y)*': p('<em><a https://x.y/>a*b</a><span> (x.y)</span></em>'),
	'[*a*](javascript:b)': p('<em>a</em><span> (javascript:b)</span>'),
	'[a [b](https://x.y) c](https://z.y)': p('[a <a https://x.y/>b</a><span> (x.y)</span> c](<a https://z.y/>https://z.y</a><span> (z.y)</span>)'),
	'[![a](https://x.y/i)](https://z.y)': p('<a https://z.y/>image: a</a><span> (z.y)</span>'),
	'![a](https://x.y/i)': p('<a https://x.y/i>image: a</a><span> (x.y)</span>'),
	'[https://x.y](https://x.y)': p('<a https://x.y/>https://x.y</a><span> (x.y)</span>'),
	'see https://x.y/a_b_c. (https://x.y)': p('see <a https://x.y/a_b_c>https://x.y/a_b_c</a>. (<a https://x.y/>https://x.y</a><span> (x.y)</span>)'),
	'<https://x.y> <mailto:a@b.c> <b>': p('<a https://x.y/>https://x.y</a><span> (x.y)</span> <a mailto:a@b.c>mailto:a@b.c</a> <b>'),
	'[a](b c) [a] (b) [a]()': p('[a](b c) [a] (b) [a]()'),
	'a  \nb\\\nc\nd': p('a<br></br>b<br></br>c\nd'),
	'# a #\n## b#\n#c': '<h2>a</h2><h3>b#</h3>' + p('#c'),
	'- a\n  b\n\n  c\n- [x] d\n1. e': '<ul><li><p>a\nb</p><p>c</p></li><li><span>☑</span><p>d</p></li></ul><ol><li><p>e</p></li></ol>',
	'> a\n> > b': '<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>',
	'- - -\n***': '<hr></hr><hr></hr>',
	'a | b\n--|:-:\n1 | 2 | 3\n4': '<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>' + p('4'),
};
for (const [text, want] of Object.entries(cases)) {
	if (got(text) !== want) console.log(JSON.stringify(text) + ':\n  got  ' + got(text) + '\n  want ' + want);
}
// A text that comes in pieces must look like the same text that comes at once.
const flow = (text, size) => {
	const f = new Flow();
	for (let i = 0; i < text.length; i += size) f.add(text.slice(i, i + size));
	f.end();
	return f.el.html.replace(/^<div>|<\/div>$/g, '');
};
const long = 'word *word* '.repeat(500).trim();
for (const text of [...Object.keys(cases), '```go\na\n\n``\r\n`` ` b\n```\nc', '```\na\n``', '~~~\n```\n~~~ x\n~~~', '```\n\n\na\n``` ', 'a\r\nb\r', '```\r\na\r\nb\r\n```\r\n*c*']) {
	for (const size of [1, 2, 3, 7]) {
		const want = flow(text, text.length);
		if (flow(text, size) !== want) console.log(JSON.stringify(text.slice(0, 99)) + ' in pieces of ' + size + ':\n  got  ' + flow(text, size).slice(0, 999) + '\n  want ' + want.slice(0, 999));
	}
}
if (flow(long, 97) !== flow(long, long.length)) console.log('a long paragraph in pieces is another one');

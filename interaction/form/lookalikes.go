package form

// lookalikes lists the characters that look like Latin letters, in one row for each letter. They are from Unicode's
// confusables.txt. Latin letters with a stroke and ligatures were added. Characters that NFKD decomposes are left
// out.
const lookalikes = "" +
	"a ɑΑαАаᎪᗅᴀ\u2376\u237a\ua4ee\U000102a0\U00016f40\n" +
	"aa \ua732\ua733\n" +
	"ae ÆæӔӕ\n" +
	"ao \ua734\ua735\n" +
	"ar \U0001f707\n" +
	"au \ua736\ua737\n" +
	"av \ua738\ua739\ua73a\ua73b\n" +
	"ay \ua73c\ua73d\n" +
	"b ƀƂƃƄɓʙΒβБВЬвѢѣҌҍᏏᏴᑲᑳᖯᗷ\ua4d0\ua7b4\U00010282\U000102a1\U00010301\n" +
	"bl Ы\n" +
	"c \u00a2ȼСсҪҫᏟᴄ\u20a1Ⲥⲥ\ua4da\uabaf\U000102a2\U00010302\U00010415\U0001043d\n" +
	"c \U0001051c\U000118e9\U000118f2\U0001f16e\U0001f74c\n" +
	"d ÐðĐđƉƌɖɗδԁᎠᏧᑯᗞᗪᴅ\u20ab\ua4d2\ua4d3\n" +
	"dz ʣ\n" +
	"e ɆɇΕεЕеҽҿᎬᴇ\u212e\u22ffⴹ\ua4f0\uab32\U00010286\U000118a6\U000118ae\n" +
	"f ƑƒϜքᖴᵮẝ\ua4dd\ua730\ua798\ua799\uab35\U00010287\U000102a5\U00010525\U000118a2\n" +
	"f \U000118c2\U0001d213\n" +
	"g ƍǤǥɠɡɢԌցᏀᏳᶃ\ua4d6\n" +
	"h ĦħɦʜΗНнћҢһӇӉհᎻᏂᏲᕼⱧⲎ\ua4e7\ua695\U000102cf\n" +
	"i ıɨɩɪιіӏᎥᵻᵼ\u2373\u2378\ua647\uab75\U000118c3\n" +
	"j ɈɉͿϳЈјᎫᒍᴊ\ua4d9\ua7b2\n" +
	"k ƙΚκКкҚҞᏦᛕᴋ\u20adⱩⲔ\ua4d7\ua740\U00010518\n" +
	"l ŁłƖƗƚǀɫɭʟΙλІӀ\u05c0\u05d5\u05df\u0627\u0661\u0673\u06f1\u07caᏞᒪᛁ\u2223\u23fdⲒⳐⵏ\n" +
	"l \ua4e1\ua4f2\U0001028a\U00010309\U00010320\U0001041b\U00010526\U000118a3\n" +
	"l \U000118b2\U00016f16\U00016f28\U0001d22a\U0001e8c7\n" +
	"ll ǁ\u05f0\u2016\u2225\U00010199\n" +
	"lo Ю\n" +
	"ls ʪ\n" +
	"lt \u20b6\n" +
	"lz ʫ\n" +
	"m ΜϺМмӍᎷᗰᛖᴍⲘ\ua4df\U000102b0\U00010311\n" +
	"mb \U0001f76b\n" +
	"n ŋƝƞɳɴΝηπոռᵰⲚ\ua4e0\U0001018e\U00010513\n" +
	"o ØøƟɵΘΟθοσОоѲѳӨөՕօ\u05e1\u0647\u0665\u06be\u06c1\u06d5\u06f5\u06ff\u07c0\u0966\n" +
	"o \u09e6\u0a66\u0ae6ଠ\u0b66\u0be6\u0c66\u0ce6ഠ\u0d66\u0e50\u0ed0ဝ\u1040ჿዐᎾᏫᴏᴑ\n" +
	"o \u2296\u229d\u236cⲞⲟⴱⵁⵔ\u3007\ua4f3\ua74a\ua74b\uab3d\uab3e\uab74\uab8e\uabbb\n" +
	"o \U00010292\U000102ab\U00010404\U0001042c\U000104c2\U000104ea\U00010516\U000114d0\n" +
	"o \U000118b5\U000118c8\U000118d7\U000118e0\U0001d21a\U0001f714\n" +
	"oe Œœ\n" +
	"oo \u221e\ua698\ua699\ua74e\ua74f\n" +
	"p ƥΡρРрᏢᑭᴘᵽ\u2374Ⲣⲣ\ua4d1\U00010295\n" +
	"q ʠԛգզⵕ\n" +
	"qe \U0001f700\n" +
	"r ƦɍɼɽʀгғᎡᏒᖇᴦᵲⲅ\ua4e3\uab47\uab48\uab81\U000104b4\U00016f35\U0001d216\n" +
	"rn ɱᵯ\u20a5\U00011700\U000118e3\n" +
	"s ƽʂςЅѕՏᏕᏚᵴ\ua4e2\ua731\uabaa\U00010296\U00010420\U00010448\U000118c1\U00016f3a\n" +
	"ss ß\n" +
	"t ŦŧƭƮȾΤτТтҬᎢᴛᵵ\u20ae\u22a4\u2361\u27d9Ⲧ\ua4d4\U00010297\U000102b1\U00010315\n" +
	"t \U000118bc\U00016f0a\U0001f768\n" +
	"tf \ua777\n" +
	"th þ\n" +
	"ts ʦ\n" +
	"u ɄʋμυՍսሀᏌᑌᴜᵾ\u222a\u22c3\ua4f4\ua79f\uab4e\uab52\uab9c\U000104ce\U000104f6\n" +
	"u \U000118b8\U000118d8\U00016f42\n" +
	"ue ᵫ\n" +
	"uo \uab63\n" +
	"v νѴѵ\u05d8\u0667\u06f7Ꮩᐯᴠ\u2228\u22c1ⴸ\ua4e6\ua6df\uaba9\U00010197\U0001051d\n" +
	"v \U00011706\U000118a0\U000118c0\U00016f08\U0001d20d\U0001f708\n" +
	"vb \U0001f76c\n" +
	"w ɯωѡѽԜԝաᎳᏔᴡ\u20a9\ua4ea\ua761\uab83\U000114c5\U0001170a\U0001170e\U0001170f\n" +
	"w \U000118e6\U000118ef\n" +
	"x \u00d7ΧχХхҲᕁᕽ\u166d\u166eᚷ\u2573\u292b\u292c\u2a2f\u2a30Ⲭⵝ\ua4eb\ua7b3\U00010196\n" +
	"x \U00010290\U000102b4\U00010317\U00010322\U00010527\U000118ec\n" +
	"y \u00a5ƴɎɏɣʏΥγУуҮүҰұყᎩᎽᶌỿⲨ\ua4ec\uab5a\U000102b2\U000118a4\U000118dc\U00016f43\n" +
	"z ƵƶȤȥʐΖζᏃᴢᵶ\ua4dc\uab93\U000102f5\U000118a9\U000118c4\U000118e5\n"

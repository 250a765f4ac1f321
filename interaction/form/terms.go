package form

// The next constants are words for secrets, by language. They are compared without accents, separators and short
// words.

// secretParts are words that mean a secret even inside a longer word.
const secretParts = `
password, passwd, passphrase, passcode, passkey, pswd, credential, mnemonic, apikey, secretkey, privatekey, accesskey,
sshkey, gpgkey, pgpkey, signingkey, encryptionkey, decryptionkey, licensekey, licencekey, productkey, masterkey,
authkey, deploykey, hostkey,
accesstoken, authtoken, apitoken, bearertoken, refreshtoken, sessiontoken, idtoken, npmtoken, githubtoken, gitlabtoken,
bottoken,
usertoken, securitytoken, devicetoken, jwttoken, oauthtoken, webtoken, clientsecret, sharedsecret, appsecret,
webhooksecret, secretword, secretphrase,
pincode, pinnumber, otpcode, onetimecode, onetimepass, verificationcode, recoverycode, backupcode, recoveryphrase,
seedphrase, seedword, backupphrase,
sessionid, sessioncookie, sessionkey, authcookie, idrsa, ided25519, keyfile, keystore, connectionstring, cardnumber,
creditcard, debitcard,
securitycode, accesscode, unlockcode, socialsecurity, securityanswer, personalaccesstoken, serviceaccountkey,
serviceaccountjson, authorizationheader, pemfile, kubeconfig, keymaterial,

密码, 密碼, 口令, 密钥, 密鑰, 秘钥, 金钥, 金鑰, 令牌, 权杖, 權杖, 私钥, 私鑰, 验证码, 驗證碼, 校验码, 校驗碼, 动态码, 動態碼, 认证码, 認證碼, 授权码, 授權碼, 激活码,
短信码, 确认码, 確認碼, 安全码, 安全碼, 助记词, 助記詞, 恢复短语, 恢復短語, 恢复词, 恢复码, 种子短语, 种子词, 备份码, 凭证, 凭据, 憑證, 憑據, 银行卡, 信用卡, 卡号, 卡號, 身份证号, 暗号, 暗語,
访问码,
提取码, 登录码, 登入碼, 一次性代码, 一次性代碼, 一次性码, 动态密, 会话id, 会话标识, 通行码, 支付码, 解锁码, 密语, 短信代码, 安全代码, 验证代码, 图形码, 双因素代码, 两步验证代码, api键,

パスワード, パスフレーズ, パスコード, 暗証番号, 認証コード, 確認コード, 検証コード, ワンタイムコード, 秘密鍵, シークレット, トークン, apiキー, アクセスキー, 秘密のキー, シークレットキー,
sshキー, 暗号鍵, 資格情報, 認証情報, ログイン情報, リカバリーフレーズ, 復元フレーズ, 復旧フレーズ, シードフレーズ, ニーモニック, カード番号, セキュリティコード, 合言葉, ピンコード, 認証番号, クレデンシャル,
復旧コード, バックアップコード, セッションid, クッキー, 鍵を入力,

비밀번호, 암호, 패스워드, 비번, 인증번호, 인증코드, 확인코드, 일회용코드, 토큰, api키, 개인키, 비밀키, 액세스키, ssh키, 복구문구, 복구구문, 시드문구, 니모닉, 핀번호, 핀코드, 자격증명,
카드번호, 보안코드, 시크릿, 접근키, 암호문구, 백업코드, 복구코드, 세션id, 쿠키, 보안키, 인증키, 비밀문구, 패스프레이즈, otp번호,

парол, пинкод, кодподтверждения, кодизсмс, кодизsms, кодизписьма, кодизприложения, одноразовыйкод, кодовоеслово,
кодоваяфраза, токен, ключapi, apiключ, ключдоступа, секретныйключ, закрытыйключ, приватныйключ, ключssh, sshключ,
ключшифрования,
секрет, учетныеданные, данныедлявхода, сидфраз, фразавосстановления, резервнаяфраза, мнемоническ, номеркарты,
коддоступа, кодбезопасности, проверочныйкод, кодавторизации, кодаутентификации, кодвосстановления, резервныйкод, куки,
кодпроверки, смскод,
кодпідтвердження, одноразовийкод, ключдоступу, секретнийключ, приватнийключ, обліковідані, фразавідновлення, лозинка,
шифрата, кодзапотвърждение,

كلمةالمرور, كلمةالسر, كلمةمرور, كلمةسر, رمزالتحقق, رمزتحقق, رمزالتاكيد, الرمزالسري, رمزسري, رمزالدخول, رمزالمرور,
رقمالتعريفالشخصي, مفتاحapi, مفتاحواجهة, المفتاحالخاص, مفتاحخاص, المفتاحالسري, مفتاحسري, مفتاحالوصول, مفتاحssh,
عبارةالاسترداد, عبارةاسترداد, عبارةالمرور, العبارةالسرية,
بياناتالاعتماد, بياناتالدخول, رقمالبطاقة, الرقمالسري, رقمسري, رمزالوصول, رمزوصول, توكن, رمزالامان, رمزالحماية,
رمزالمصادقة, رمزالتفعيل, الرمزالمميز, كلمهالمرور, كلمهالسر, رمزpin, رمزعبور, گذرواژه, کدتایید,

पासवर्ड, पासकोड, पासफ्रेज, पिनकोड, पिनदर्ज, ओटीपी, सत्यापनकोड, गुप्तशब्द, गुप्तकुंजी, गुप्तकोड, कूटशब्द, टोकन,
एपीआईकुंजी, apiकुंजी, निजीकुंजी, sshकुंजी, रिकवरीवाक्यांश, पुनर्प्राप्तिवाक्यांश, सीडवाक्यांश, कार्डनंबर, सीक्रेट,
क्रेडेंशियल, सुरक्षाकोड, एक्सेसकुंजी, प्रमाणीकरणकोड, पहुंचटोकन,

รหัสผ่าน, รหัสยืนยัน, รหัสลับ, โทเค็น, รหัสพิน, סיסמה, סיסמא, קודאימות, পাসওয়ার্ড, কোডযাচাই, கடவுச்சொல், పాస్వర్డ్,
συνθηματικο, κωδικοςπροσβασης, κωδικοσεπαληθευσης, 

passwort, kennwort, losungswort, zugangsdaten, anmeldedaten, logindaten, zugangscode, geheimzahl, geheimnis, geheimcode,
apischlussel, zugangsschlussel, zugriffsschlussel, geheimschlussel, sicherheitsschlussel, einmalcode, einmalkennwort,
bestatigungscode, sicherheitscode, verifizierungscode, prufcode, freischaltcode, wiederherstellungsphrase,
wiederherstellungscode, wiederherstellungsschlussel, kartennummer, prufziffer, zugriffstoken, privaterschlussel,
geheimerschlussel, sshschlussel,
wachtwoord, toegangscode, verificatiecode, beveiligingscode, bevestigingscode, herstelzin, herstelcode, herstelsleutel,
inloggegevens, kaartnummer, apisleutel, toegangssleutel, privesleutel, geheimesleutel, eenmaligecode, inlogcode,
wachtzin, sshsleutel, aanmeldgegevens, toegangstoken,
contrasena, contrasenya, contrasinal, clavedeacceso, claveapi, claveprivada, clavesecreta, clavessh, clavedeseguridad,
palabradepaso, fraseclave, frasesemilla, frasederecuperacion, frasesecreta, codigodeverificacion, codigodeseguridad,
codigodeconfirmacion, codigodeacceso, codigodeunsolouso, codigosms, codigodeautenticacion, codigoderecuperacion,
numerodetarjeta, tokendeacceso, credencial, palabrasecreta, tuclave, suclave, introduceclave,
palavrapasse, palavrachavesecreta, chaveapi, chavedeapi, chavedeacesso, chaveprivada, chavesecreta, chavessh,
codigodeverificacao, codigodeseguranca, codigodeconfirmacao, codigodeacesso, codigodeusounico, codigodeautenticacao,
codigoderecuperacao, codigodoautenticador, frasesecreta, fraseseed, frasederecuperacao, numerodocartao, tokendeacesso,
suasenha, minhasenha, codigoenviado, fraseseedmnemonica,
motdepasse, motdepass, phrasedepasse, phrasesecrete, phrasederecuperation, codedeverification, codedesecurite,
codedeconfirmation, codesecret, codedacces, codeausageunique, codeconfidentiel, codesms, codedevalidation, codepin,
cleapi, cledapi, cleprivee, clesecrete, cledacces, clessh, cledelicence, jetondacces, jetonapi, numerodecarte,
identifiantsdeconnexion, motsecret,
parolasegreta, parolaordine, codicediverifica, codicedisicurezza, codicediconferma, codicediaccesso, codicesegreto,
codicemonouso, codicepin, codicesms, codicediautenticazione, codicedirecupero, chiaveapi, chiaveprivata, chiavesegreta,
chiavediaccesso, chiavessh, frasedirecupero, frasesegreta, fraseseme, numerodicarta, numerodellacarta, numerocarta,
credenziali,
haslo, kodweryfikacyjny, kodjednorazowy, koddostepu, kodbezpieczenstwa, kodsms, kodpin, kodpotwierdzajacy,
kodautoryzacyjny, kodzapasowy, kododzyskiwania, kluczapi, kluczprywatny, kluczdostepu, klucztajny, kluczssh,
frazaodzyskiwania, danelogowania, poswiadczenia, numerkarty, tokendostepu, hasla, haslem, kluczszyfrujacy, tajnyklucz,
sifre, dogrulamakodu, onaykodu, guvenlikkodu, tekkullanimlik, apianahtari, gizlianahtar, ozelanahtar, erisimanahtari,
sshanahtari, kurtarmaifadesi, kurtarmakodu, kartnumarasi, kimlikbilgileri, belirtec, gizlikelime, gizlikod, pinkodu,
girisbilgileri, erisimkodu, parolanizi, parolaniz,
matkhau, maxacminh, maxacthuc, khoaapi, khoabimat, cumtukhoiphuc, maotp, katasandi, katalaluan, kodeverifikasi, kodeotp,
kunciapi, frasapemulihan, kodeakses,
losenord, losenordet, engangskod, verifieringskod, apinyckel, adgangskode, kodeord, passord, engangskode,
bekraeftelseskode, apinogle, apinokkel, salasana, tunnusluku, vahvistuskoodi, apiavain,
overovacikod, klicapi, jelszo, ellenorzokod, titkoskulcs, codverificare, coddeverificare, cheieapi, lozinka, nenosiri,
cheieprivata, heslo, kodpotvrdenia, jednorazovykod, soukromyklic
`

// secretWords are words that mean a secret only as whole words.
const secretWords = `
pw, otp, totp, hotp, 2fa, mfa, tfa, cvv, cvc, cvv2, cvc2, iban, ssn, creds, jwt, mtan, smstan, pushtan, puk, psw, pword,
pwrd, passw, jsessionid, phpsessid,
senha, segredo, segreto, sifrem, sifreniz, sekret, пин, пінкод, पिन, ピン, 핀, heslo, sandi, wachtwrd, pasword, passwort,
ziffernblock, geheimwort
`

// keyWords are the words for "key". A key may be a secret, a key of a table or a key of a keyboard.
const keyWords = `key, keys, cle, cles, clave, claves, chave, chaves, chiave, chiavi, schlussel, sleutel, ` +
	`sleutels, klucz, klucze, anahtar, anahtari, anahtarini, nyckel, nokkel, nogle, avain, ключ, ключи, مفتاح, ` +
	`कुंजी, 키, キー, 鍵`

// ownWords are words before something that the person must give.
const ownWords = `your, my, enter, paste, provide, supply, insert, give, tell, share, submit, tu, su, tus, ihr, ` +
	`ihren, dein, deinen, uw, jouw, je, votre, vos, ton, saisissez, sua, seu, tua, tuo, inserisci, twoj, podaj, ` +
	`wpisz, ваш, введите, твой, introduce, introduzca, digite, gib, geben, voer`

// services are names of services. Together with a word for a key, they mean the key of an account.
const services = `openai, anthropic, claude, gemini, github, gitlab, bitbucket, aws, azure, gcp, google, stripe, ` +
	`twilio, sendgrid, slack, discord, telegram, cloudflare, heroku, vercel, netlify, digitalocean, datadog, ` +
	`sentry, npm, pypi, docker, huggingface, mistral, cohere, groq, deepseek, openrouter, perplexity, replicate, ` +
	`jira, atlassian, notion, linear, figma, shopify, paypal, mailgun, mongodb, supabase, firebase, okta, auth0, ` +
	`algolia, mapbox, pinecone, elastic, newrelic, pagerduty, zapier, airtable, asana, trello, dropbox, facebook, ` +
	`twitter, linkedin, spotify, binance, coinbase, kraken, wallet, bank, vpn, wifi, wlan, server, root, admin, ` +
	`ssl, tls, api, account, production`

// otherKeys are words before "key", and otherKeyUses are words after it. With such a word, the key is harmless.
const otherKeys = `primary, foreign, sort, partition, cache, dictionary, json, yaml, map, object, translation, ` +
	`i18n, locale, lookup, index, group, grouping, hash, registry, config, configuration, setting, settings, ` +
	`shortcut, hot, arrow, enter, return, escape, esc, function, keyboard, musical, music, public, issue, project, ` +
	`ticket, routing, unique, composite, column, storage, s3, bucket, message, event, feature, flag, label, tag, ` +
	`metadata, header, query, parameter, property, attribute, field, data, dict, env, variable, environment, ` +
	`idempotency, dedup, shard, shift, control, ctrl, alt, tab, modifier, leader, prefix, trigger, the, a, an, ` +
	`this, that, each, every, which, what, new, old, same, any, one, first, second, last, no, row, surrogate, ` +
	`natural, join, range, document, entity, record, output, input, result, state, context, section, answer, ` +
	`piano, song, theme, color, colour, translation, resource, path, job, task, i, or, and, of, by, as, with, is, ` +
	`for, in, to, on`
const otherKeyUses = `binding, bindings, name, names, value, values, word, words, board, path, prefix, frame, ` +
	`frames, column, columns, field, length, size, bits, type, algorithm, mapping, mappings, map, combination, ` +
	`press, code, codes, format, rotation, usage, count, points, point, figures, features, feature, results, ` +
	`takeaways, metrics, metric, result, person, people, contact, contacts, stakeholders, dates, date, phrase, ` +
	`phrases, ring, pair, events, event, performance, signature, order, sort, delay, repeat, layout, findings, ` +
	`questions, question, ideas, topics, bindings, stroke, strokes, vault, id, ids, in, to, of, by, from, is, are, ` +
	`or, and, separator, style, case, for`

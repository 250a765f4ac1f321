package redact

// kinds are the kinds of API keys with a known prefix, as their makers document them. The shape describes the text
// after the prefix. It is a list of parts. A part is a letter for the alphabet and the number of bytes. A + after the
// number means at least that number. A part that begins with an apostrophe is literal text. For example, w32 '_ h8
// means 32 letters or digits, then _, then 8 hexadecimal digits.
//
//	w letters and digits   d also - and _   p also .   h hexadecimal   n digits
//	u capitals and digits  b base64, also of URLs
//
// A ? at the start of a shape means that the prefix could also begin a word. Such a key must contain a digit and a
// letter, and must not be in a path or a longer name. The table was compared with the rules of gitleaks, on samples
// that were made from their expressions.
var kinds = []kind{
	// Keys of models and their tools.
	{"sk-ant-", "d8+"}, {"sk-proj-", "d8+"}, {"sk-svcacct-", "d8+"}, {"sk-admin-", "d8+"},
	{"sk-or-v1-", "d8+"}, {"sk-lf-", "d16+"}, {"gsk_", "w30+"}, {"xai-", "w30+"}, {"hf_", "w30+"},
	{"api_org_", "w30+"}, {"r8_", "w30+"}, {"pplx-", "w32+"}, {"csk-", "?w32+"}, {"nvapi-", "d32+"},
	{"tvly-", "d20+"}, {"fc-", "?h32"}, {"fw_", "?w20+"}, {"tgp_v1_", "d32+"}, {"pcsk_", "d32+"},
	{"lsv2_pt_", "d32+"}, {"lsv2_sk_", "d32+"}, {"sk_", "?h48"}, {"rpa_", "?w32+"}, {"e2b_", "h40"},
	{"jina_", "w32+"}, {"dtn_", "?h40+"}, {"bb_live_", "d20+"}, {"AIza", "d30+"}, {"ABSK", "b100+"},
	{"bedrock-api-key-", "b40+"}, {"apify_api_", "w20+"}, {"wandb_v1_", "d40+"},
	{"perlica_tok_", "w30+"},

	// Keys of hosts of code and packages.
	{"github_pat_", "d20+"}, {"ghp_", "w20+"}, {"gho_", "w20+"}, {"ghu_", "w20+"}, {"ghs_", "w20+"},
	{"ghr_", "w20+"}, {"glpat-", "p16+"}, {"gldt-", "d20+"}, {"glrt-", "p20+"}, {"glrtr-", "p20+"},
	{"glcbt-", "p20+"}, {"glptt-", "h40"}, {"glft-", "d20+"}, {"glimt-", "d20+"}, {"glagent-", "d40+"},
	{"gloas-", "d40+"}, {"glffct-", "d20+"}, {"glsoat-", "d20+"}, {"glwt-", "d20+"}, {"GR1348941", "d20+"},
	{"npm_", "w30+"}, {"pypi-AgE", "d30+"}, {"rubygems_", "h48"}, {"cio", "?w32"}, {"oy2", "?w43"},
	{"CLOJARS_", "w60"}, {"dckr_pat_", "d20+"}, {"dckr_oat_", "d20+"}, {"AKCp", "w69"},
	{"cmVmdGtuOj", "w50+"}, {"cmVmd", "w59"}, {"ATATT3", "b60+"}, {"ATCTT3", "b60+"}, {"ATBB", "?w32+"},
	{"BBDC-", "b40+"}, {"CCIPAT_", "d40+"}, {"CCIPRJ_", "d40+"}, {"bkua_", "h40"}, {"bkct_", "w40+"},
	{"squ_", "h40"}, {"sqp_", "h40"}, {"sqa_", "h40"}, {"sgp_", "d40+"}, {"slk_", "h64"},
	{"API-", "?u25+"}, {"sntrys_", "b60+"}, {"sntryu_", "h64"}, {"jfvs_", "w40+"}, {"tfc_", "?w40+"},
	{"_gitlab_session=", "w32"},

	// Keys of clouds and their services.
	{"AKIA", "u16"}, {"ASIA", "u16"}, {"ABIA", "u16"}, {"A3T", "?u17"}, {"t1.9euel", "p60+"}, {"ACCA", "u16"},
	{"GOCSPX-", "d20+"},
	{"ya29.", "p20+"}, {"1//0", "?d30+"}, {"LTAI", "?w16+"}, {"AKID", "?w32"}, {"AKLT", "?w30+"},
	{"bce-v3/ALTAK-", "b40+"}, {"AQVN", "?d35+"}, {"YC", "?d38"}, {"hvs.", "d20+"}, {"hvb.", "d20+"},
	{"hvr.", "d20+"}, {"s.", "?w24"}, {"b.AAAAAQ", "d40+"}, {"dop_v1_", "h64"}, {"doo_v1_", "h64"},
	{"dor_v1_", "h64"}, {"dapi", "?h32"}, {"dose", "?h32"}, {"dkea", "?h32"}, {"dp.pt.", "w40+"}, {"dp.st.", "p40+"},
	{"dp.ct.", "w40+"},
	{"dp.sa.", "w40+"}, {"dp.scim.", "w40+"}, {"dp.audit.", "w40+"}, {"dp.said.", "w40+"},
	{"HRKU-", "d36+"}, {"v1.0-", "h24 '- h100+"}, {"cfat_", "d30+"}, {"cfut_", "d30+"}, {"cfk_", "?d30+"},
	{"pul-", "h40"}, {"ico-", "?w32"}, {"fo1_", "?d40+"}, {"fm1a_", "b60+"}, {"fm1r_", "b60+"},
	{"fm2_", "b60+"}, {"vcp_", "?w24+"}, {"vck_", "?w24+"}, {"nfp_", "?w36+"}, {"nfc_", "?w36+"}, {"rnd_", "?w28+"},
	{"sbp_", "?h40"}, {"sbp_v0_", "h40"}, {"sb_secret_", "d20+"}, {"napi_", "?w40+"}, {"AVNS_", "d15+"},
	{"pscale_tkn_", "p32+"}, {"pscale_oauth_", "p32+"}, {"pscale_pw_", "p32+"}, {"mdb_sa_sk_", "d30+"},
	{"dbtc_", "?d30+"}, {"dbtu_", "?d30+"}, {"tskey-", "d16+"}, {"sha256~", "d43"}, {"4b1d", "?w38"},
	{"tk-us-", "d48"}, {"AGE-SECRET-KEY-1", "w30+"}, {"ops_eyJ", "b100+"}, {"A3-", "?u6 '- u11 '- u5 '- u5 '- u5"},
	{"A3-", "?u6 '- u6 '- u5 '- u5 '- u5 '- u5"},
	{"tr_prod_", "?w20+"}, {"tr_dev_", "?w20+"}, {"pnu_", "?w36"}, {"pnb_", "?w36"}, {"n8n_api_", "w30+"},
	{"signkey-prod-", "h32+"}, {"signkey-test-", "h32+"}, {"unkey_", "?w22+"}, {"polar_oat_", "w30+"},

	// Keys of services for messages, mail and telephones.
	{"xoxb-", "d10+"}, {"xoxa-", "d8+"}, {"xoxp-", "d10+"}, {"xoxr-", "d8+"}, {"xoxs-", "d10+"},
	{"xoxo-", "d10+"}, {"xoxc-", "d10+"}, {"xoxd-", "b10+"}, {"xoxe-", "d10+"}, {"xoxe.", "d10+"},
	{"xapp-", "d10+"}, {"xwfp-", "d10+"}, {"SG.", "d16+ '. d16+"}, {"xkeysib-", "h64 '- w16"},
	{"xsmtpsib-", "h64 '- w16"}, {"key-", "?h32"}, {"SK", "?h32"}, {"re_", "?w8 '_ w24"},
	{"MT", discord}, {"Mj", discord}, {"Mz", discord}, {"ND", discord}, {"NT", discord}, {"Nj", discord},
	{"Nz", discord}, {"OD", discord}, {"OT", discord}, {"pat-na1-", "?d32+"}, {"pat-eu1-", "?d32+"}, {"dG9rO", "?b40+"},
	{"syt_", "b30+"}, {"tk_", "?w29"},

	// Keys of services for payments.
	{"sk_live_", "d10+"}, {"sk_test_", "d10+"}, {"sk_prod_", "d10+"}, {"rk_live_", "d10+"}, {"rk_test_", "d10+"},
	{"rk_prod_", "d10+"}, {"whsec_", "b16+"}, {"sq0atp-", "d22+"}, {"sq0csp-", "d22+"}, {"EAAA", "?d24+"},
	{"EAAM", "?w100+"}, {"EAAC", "?w100+"}, {"EAAG", "?w100+"}, {"EAAB", "?w100+"}, {"rzp_live_", "w14+"},
	{"rzp_test_", "w14+"}, {"access_token$production$", "w16 '$ h32"}, {"access_token$sandbox$", "w16 '$ h32"},
	{"access-sandbox-", "?d30+"}, {"access-production-", "?d30+"}, {"access-development-", "?d30+"},
	{"FLWSECK_TEST-", "d12+"}, {"FLWSECK-", "d12+"}, {"shpat_", "h32"}, {"shpca_", "h32"}, {"shppa_", "h32"},
	{"shpss_", "h32"}, {"shptka_", "h32"}, {"shpua_", "h32"}, {"shippo_live_", "h40"}, {"shippo_test_", "h40"},
	{"EZAK", "w54"},
	{"EZTK", "w54"}, {"duffel_live_", "b30+"}, {"duffel_test_", "b30+"}, {"live_", "?w30+"}, {"test_", "?h35"},
	{"pdl_live_apikey_", "d20+"}, {"pdl_sdbx_apikey_", "d20+"}, {"sm_aat_", "?w16"}, {"sm_pat_", "?w16"},
	{"sm_sat_", "?w16"},

	// Keys of services for monitoring, planning and writing.
	{"glsa_", "w32 '_ h8"}, {"glc_", "?b32+"}, {"NRAK-", "w20+"}, {"NRJS-", "h19"}, {"NRII-", "d20+"},
	{"NRIQ-", "d20+"}, {"NRRA-", "h40+"}, {"dt0c01.", "w24 '. w64"}, {"dt0s01.", "w8+ '. w64"}, {"dt0s16.", "w8+ '. w64"},
	{"hcaik_", "w40+"}, {"hcxik_", "w40+"}, {"hcxlk_", "w40+"}, {"hcamk_", "w40+"}, {"phx_", "?d32+"},
	{"sdk-", "?h8 '- h4 '- h4 '- h4 '- h12"},
	{"api-", "?h8 '- h4 '- h4 '- h4 '- h12"},
	{"lin_api_", "w32+"}, {"lin_oauth_", "w32+"}, {"lin_wh_", "w32+"}, {"ntn_", "?w40+"}, {"secret_", "?w40+"},
	{"pat", "?w14 '. h64"}, {"figd_", "d30+"}, {"figo_", "d30+"}, {"PMAK-", "h24 '- h34"}, {"PMAT-", "w26"},
	{"sl.", "?d60+"},
	{"tfp_", "?p40+"}, {"rdme_", "w60+"}, {"CFPAT-", "d40+"}, {"pat.", "?d22 '. w24 '. w20"},
	{"sat.", "?d22 '. w24 '. w20"}, {"s-s4t2ud-", "h64"}, {"s-s4t2af-", "h64"}, {"p8e-", "?w32"},
	{"dnkey-", "d60+"}, {"fio-u-", "b60+"}, {"b_", "?b44"}, {"sk.eyJ", "p40+"}, {"oauth:", "?w30"},
	{"WPL_AP1.", "b20+"}, {"AAAAAAAAAAAAAAAAAAAAA", "?b60+"}, {"UCAT_", "w30+"}, {"ucat_", "w30+"},
	{"retool_", "?d26+"}, {"secret-live-", "d30+"}, {"secret-test-", "d30+"}, {"pk_", "?h34"}, {"scauth_", "?p40+"},
	{"eyJrIjoi", "b70+"}, {"ZXlK", "?b40+"}, {"xprv", "?w100+"},

	{"sk-", kindSolid}, {"eyJ", kindJWT}, {"eyJ", kindJSON}, {"ewog", kindJSON},
}

// These shapes are checked by functions and not by a list of parts.
const (
	kindSolid = "solid"
	kindJWT   = "jwt"
	kindJSON  = "json" // a JSON object in base64

	discord = "?d21+ '. d6 '. d27+"
)

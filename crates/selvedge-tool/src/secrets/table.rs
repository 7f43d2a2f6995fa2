//! The built-in shapes: what keys of well-known services look like.
//!
//! A new one is a new row. None of them matches across a line.

use super::pattern::Pattern;
use super::pattern::Severity::{Critical, High};
use super::plausible::{is_key, is_password, is_userinfo, is_word, is_wordless};

const fn row(name: &'static str, words: &'static [&'static str], regex: &'static str) -> Pattern {
    Pattern {
        name,
        severity: High,
        words,
        regex,
        accepts: is_key,
    }
}

/// More exact shapes come first: of two that match, the first gives its name.
pub(super) static TABLE: &[Pattern] = &[
    // Models.
    row(
        "anthropic_key",
        &["sk-ant-"],
        r"\bsk-ant-[a-z0-9]{2,12}-[A-Za-z0-9_-]{20,}",
    ),
    row("openrouter_key", &["sk-or-"], r"\bsk-or-v1-[0-9a-f]{40,}"),
    row(
        "openai_key",
        &["sk-"],
        r"\bsk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{40,}\b)",
    ),
    row("google_api_key", &["AIza"], r"\bAIza[0-9A-Za-z_-]{35}"),
    row("groq_key", &["gsk_"], r"\bgsk_[A-Za-z0-9]{40,}"),
    row("huggingface_token", &["hf_"], r"\bhf_[A-Za-z0-9]{30,}\b"),
    row("xai_key", &["xai-"], r"\bxai-[A-Za-z0-9]{60,}"),
    row("perplexity_key", &["pplx-"], r"\bpplx-[A-Za-z0-9]{40,}"),
    row("replicate_token", &["r8_"], r"\br8_[A-Za-z0-9]{37,}\b"),
    // Code.
    row(
        "github_token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        r"\bgh[pousr]_[A-Za-z0-9]{36,}",
    ),
    row(
        "github_fine_grained_token",
        &["github_pat_"],
        r"\bgithub_pat_[A-Za-z0-9_]{22,}",
    ),
    row(
        "gitlab_token",
        &[
            "glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-", "glsoat-", "glimt-", "gloas-",
            "glagent-",
        ],
        r"\bgl(?:pat|dt|rt|ptt|cbt|ft|soat|imt|oas|agent)-[A-Za-z0-9_-]{20,}",
    ),
    row("npm_token", &["npm_"], r"\bnpm_[A-Za-z0-9]{36,}\b"),
    Pattern {
        accepts: is_wordless,
        ..row(
            "npm_auth_token",
            &["_auth"],
            r"(?i)(?:^|[:\s])_auth(?:Token)?[ \t]*=[ \t]*([A-Za-z0-9._+/=-]{16,})",
        )
    },
    row("pypi_token", &["pypi-AgE"], r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
    row(
        "rubygems_key",
        &["rubygems_"],
        r"\brubygems_[a-f0-9]{40,}\b",
    ),
    row("crates_token", &["cio"], r"\bcio[A-Za-z0-9]{32}\b"),
    row("nuget_key", &["oy2"], r"\boy2[a-z0-9]{43}\b"),
    row(
        "docker_token",
        &["dckr_pat_", "dckr_oat_"],
        r"\bdckr_[po]at_[A-Za-z0-9_-]{27,}",
    ),
    // Clouds.
    Pattern {
        severity: Critical,
        ..row(
            "aws_access_key_id",
            &["AKIA", "ASIA", "ABIA", "ACCA"],
            r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
        )
    },
    Pattern {
        severity: Critical,
        ..row(
            "aws_secret_key",
            &["aws", "secret"],
            r#"(?i)(?:aws[a-z_.-]{0,20}(?:key|secret)|secret[_-]?access[_-]?key)\\?["']?[ \t]*(?:=>|[:=])[ \t]*\\?["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|$)"#,
        )
    },
    row(
        "google_oauth_token",
        &["ya29."],
        r"\bya29\.[0-9A-Za-z_-]{20,}",
    ),
    row(
        "google_client_secret",
        &["GOCSPX-"],
        r"\bGOCSPX-[A-Za-z0-9_-]{20,}",
    ),
    row(
        "azure_account_key",
        &["AccountKey"],
        r"(?i)AccountKey=([A-Za-z0-9+/]{60,}={0,2})",
    ),
    row(
        "azure_signature",
        &["sig="],
        r"(?i)[?&;]sig=([A-Za-z0-9%+/]{40,}(?:%3D|=){0,2})",
    ),
    row(
        "digitalocean_token",
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        r"\bdo[opr]_v1_[a-f0-9]{64}\b",
    ),
    row(
        "databricks_token",
        &["dapi"],
        r"\bdapi[a-f0-9]{32}(?:-\d)?\b",
    ),
    row("heroku_key", &["HRKU-"], r"\bHRKU-[A-Za-z0-9_-]{30,}"),
    row(
        "vault_token",
        &["hvs.", "hvb."],
        r"\bhv[sb]\.[A-Za-z0-9_-]{24,}",
    ),
    row(
        "terraform_token",
        &[".atlasv1."],
        r"\b[A-Za-z0-9]{14}(\.atlasv1\.[A-Za-z0-9_=-]{40,})",
    ),
    row("pulumi_token", &["pul-"], r"\bpul-[a-f0-9]{40}\b"),
    row(
        "planetscale_token",
        &["pscale_"],
        r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9._-]{32,}",
    ),
    row("supabase_token", &["sbp_"], r"\bsbp_[a-f0-9]{40}\b"),
    row(
        "doppler_token",
        &["dp.pt.", "dp.st.", "dp.ct."],
        r"\bdp\.[psc]t\.[A-Za-z0-9._-]{40,}",
    ),
    row(
        "fly_token",
        &["fo1_", "fm2_"],
        r"\b(?:fo1_[\w-]{43}|fm2_[A-Za-z0-9+/]{100,}={0,3})",
    ),
    // Services.
    row(
        "slack_token",
        &[
            "xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-",
        ],
        r"\b(?:xox[abeoprs][.-]|xapp-)(?:xox[a-z]-)?[A-Za-z0-9-]{20,}",
    ),
    row(
        "slack_webhook",
        &["hooks.slack.com"],
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_+-]{20,})",
    ),
    row(
        "stripe_key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_"],
        r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    ),
    row(
        "stripe_webhook_secret",
        &["whsec_"],
        r"\bwhsec_[A-Za-z0-9+/]{24,}",
    ),
    row(
        "sendgrid_key",
        &["SG."],
        r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,}",
    ),
    row("mailgun_key", &["key-"], r"\bkey-[0-9a-f]{32}\b"),
    row(
        "telegram_token",
        &[":AA"],
        r"\b\d{8,10}:(AA[A-Za-z0-9_-]{33})",
    ),
    row(
        "discord_webhook",
        &["/api/webhooks/"],
        r"discord(?:app)?\.com/api/webhooks/\d{10,}/([A-Za-z0-9_-]{40,})",
    ),
    row(
        "shopify_token",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b",
    ),
    row(
        "square_token",
        &["EAAA", "sq0"],
        // Four letters that base64 is full of.
        r"(?:^|[^A-Za-z0-9+/_-])(EAAA[A-Za-z0-9_-]{60}|sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,})(?:[^A-Za-z0-9+/]|$)",
    ),
    row(
        "linear_key",
        &["lin_api_", "lin_oauth_"],
        r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}",
    ),
    row("figma_token", &["figd_"], r"\bfigd_[A-Za-z0-9_-]{30,}"),
    row("notion_token", &["ntn_"], r"\bntn_[A-Za-z0-9]{40,}"),
    row(
        "postman_key",
        &["PMAK-"],
        r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\b",
    ),
    row(
        "new_relic_key",
        &["NRAK-", "NRII-"],
        r"\bNR(?:AK|II)-[A-Za-z0-9_-]{25,}",
    ),
    row(
        "grafana_token",
        &["glsa_", "glc_"],
        r"\bgl(?:sa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}|c_[A-Za-z0-9+/]{32,}={0,2})",
    ),
    row(
        "sentry_token",
        &["sntrys_", "sntryu_"],
        r"\bsntry[su]_[A-Za-z0-9+/=_-]{40,}",
    ),
    row(
        "atlassian_token",
        &["ATATT3"],
        r"\bATATT3[A-Za-z0-9_=-]{40,}",
    ),
    row(
        "airtable_token",
        &["pat"],
        r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b",
    ),
    Pattern {
        severity: Critical,
        ..row(
            "age_key",
            &["AGE-SECRET-KEY-"],
            r"\bAGE-SECRET-KEY-1[A-Z0-9]{40,}",
        )
    },
    // Ways of writing one down.
    row(
        "jwt",
        &["eyJ"],
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,}",
    ),
    Pattern {
        accepts: is_wordless,
        ..row(
            "bearer_token",
            &["bearer"],
            r"(?i)\bbearer[ \t]+([A-Za-z0-9._~+/-]{16,}=*)",
        )
    },
    Pattern {
        accepts: is_word,
        ..row(
            "basic_auth",
            &["basic"],
            r#"(?i)authorization\\?["']?[ \t]*[:=][ \t]*\\?["']?basic[ \t]+([A-Za-z0-9+/]{8,}={0,2})"#,
        )
    },
    Pattern {
        severity: Critical,
        accepts: is_userinfo,
        ..row(
            "connection_string",
            &["://"],
            r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s:/?#@"'`<>]*:([^\s/?#@"'`<>]{3,}|[^\s@"'`<>]{8,})@[^\s@]"#,
        )
    },
    Pattern {
        severity: Critical,
        accepts: is_password,
        ..row(
            "connection_string",
            &["pwd=", "password="],
            r#"(?i)(?:server|data source|host|user id|uid|accountendpoint)=[^;"']+;[^"']*?(?:pwd|password)=([^;"'\s]{3,})"#,
        )
    },
];

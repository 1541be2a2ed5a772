//! Keys and tokens for tests: the examples of RFC 7515 (appendix A) and RFC 8037 (appendix A.4), and one token of each
//! algorithm with the claims `{"iss":"key"}`, made with another implementation. The private keys were thrown away.

pub(super) const RFC7515_A2_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAofgWCuLjybRlzo0tZWJj
NiuSfb4p4fAkd/wWJcyQoTbji9k0l8W26mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEz
P1Pt0Bm4d4QlL+yRT+SFd2lZS+pCgNMsD1W/YpRPEwOWvG6b32690r2jZ47soMZo
9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5z5rexMdbBYUsLA9e+KXBdQOS+UTo7WTB
EMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6/I5IhlJH7aGhyxX
FvUK+DWNmoudF8NAco9/h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXp
oQIDAQAB
-----END PUBLIC KEY-----";

pub(super) const RFC7515_A2_KEY_PKCS1: &str = "\
-----BEGIN RSA PUBLIC KEY-----
MIIBCgKCAQEAofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd/wWJcyQoTbji9k0l8W2
6mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL+yRT+SFd2lZS+pCgNMs
D1W/YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5
z5rexMdbBYUsLA9e+KXBdQOS+UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxv
b3qCo5ZwKh9kG4LT6/I5IhlJH7aGhyxXFvUK+DWNmoudF8NAco9/h9iaGNj8q2et
hFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQIDAQAB
-----END RSA PUBLIC KEY-----";

pub(super) const RFC7515_A2_SIGNATURE: &str = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2F\
    p5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQB\
    MHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeY\
    I2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";

pub(super) const RFC7515_A3_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
-----END PUBLIC KEY-----";

pub(super) const RFC7515_A4_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQB6SkFDxJPxrxVx9U5M2Xfne9KsMIs
sleY+TTrBOPGuuNwGlenkQ6dgb82MVno68sVXWNJ9L22zPipTFxZx6rBAaQANKZE
DjdnUNI3H9G9wsjztx0vTuXqNDLIFcyjFWD+XZOH7HdLVYOGMOXLv1qMvgqR3QBk
xpmaH25uZ/rd7eTIyPY=
-----END PUBLIC KEY-----";

pub(super) const RFC8037_A4_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
-----END PUBLIC KEY-----";

pub(super) const RSA_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA13KxxxknCCiRusBwjlvf
IaqcXMHis+EefAj9UH/AJsT9Dj50y2DKL2Zao3EniJbntplnHX51p+52sEhKiKSm
VGIb+fKA3ywBXjJy+f8icoRzHMKEIrj1llPsSeFfmH+a83tufB9eX1ZGJA002gVc
Y/fXLEpSq4k3U0FHItyJNAVy0Z+ovyl2Am36TIvIXLooNtBcoULOAjsL3Mvt+W9I
csRzxb7XAkuwug696vtaOeRBKyJ6hr45j3fdCriV2OoEdQL/oQ8q9o1iGBJj2uQ2
0ygkX6Ymzx8zbgdnQXhCM7nIOr1m5PnDoFAzRWCt2qhCmIH2bRZAQ1t/ilbLmqIb
PwIDAQAB
-----END PUBLIC KEY-----";

/// RSA keys of 512 and 1024 bits, and tokens with the claims `{"key":"short"}`, made with another implementation.
pub(super) const RSA_512_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAOC6hSW4VedticI85DlaFAsTrNqb7vTa
y5SgZ2ebOER9vPCMRpa5K1HRo0Bquy5LRqolnMk5GBxEJmjemDSASqcCAwEAAQ==
-----END PUBLIC KEY-----";

pub(super) const RSA_512_TOKEN: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJrZXkiOiJzaG9ydCJ9.\
    1YKHXchCS2ybzRzU1Njiz4BnphdwyotABpUshUN-00Sjr9AfpNJfGIDyHG6JG9vx137XfLhHCt9pvLY5C4IOYA";

pub(super) const RSA_1024_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDN5GSynSV0mDgcBn3YktjkIj36
m9rK+NOtUV3bxXuJI5Rwol69jpvGZ9DUFj7Q231Yqzb7TGNTOf5ojQqL00CPiG03
YBQ7aplpCuN5gEKhisW+fe6L0wYuUYLFj4D73G0/Bg7awMdke814DcxpbXk7sPGI
vPdMPgMRgOYtNNoapQIDAQAB
-----END PUBLIC KEY-----";

/// With RS384.
pub(super) const RSA_1024_TOKEN: &str = "eyJhbGciOiJSUzM4NCIsInR5cCI6IkpXVCJ9.eyJrZXkiOiJzaG9ydCJ9.\
    fBPjRpi5dlndkBa_07PlMNgLU0xG4k_kxc5VFjJEpk5aF8MqFL1iPoKXGKFn9Wt0TuvPrU-ucUz8UIhlzsZjBPICvqOUKT2Mac8X\
    lA4HtLEOuHpAFWMrUJBUbjkSbSSwrWHdNkTkcP66eUgtKMusS_AFDXYFZuaGB6JCaeHSH9E";

/// With RS512.
pub(super) const RSA_1024_LONG_TOKEN: &str = "eyJhbGciOiJSUzUxMiIsInR5cCI6IkpXVCJ9.eyJrZXkiOiJzaG9ydCJ9.\
    QG_F56cHvXCQjwq-v0xSGqxghxByDUNmMduRtBtiIGu4k8FJ90Ke0NjHA6h31LObTWIwfQ5tcX5LN1msHFVVjJlh8Af0Ys1-exgx\
    NaJFHrgkiSWjRa_KOInqiCK8ohBEixLc2f4P0Q1IkUNDoq9ybm1ukTeDo76KHdvLvDyRJrE";

pub(super) const P256_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEzvO8yn8l2Khs/ot1LdHAASIhSboX
3WUJfmr2lg9MBaM2Hp9f0rvaJXL5IA4LJgz359pby5xGu3TBqcN+rUyFDg==
-----END PUBLIC KEY-----";

pub(super) const P384_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEwc4AdmAG1hLQrCZBEJdIohDPbLWSZwax
at8clPgc7/axeepI7PAwuhmzVmOki4OY4suk25rRnBNqnICZ7V9ctsyDx2FvvoDW
KdvIZ+oyNus4u8he62w5t/v154nomGfM
-----END PUBLIC KEY-----";

pub(super) const P521_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQBZvBG0q5uKN7OD32GBfOqAUKJmi+v
yUkkgWMG7NOHoLufxd6w4jG8Hx2nHmQvKtj9Zgj1atKf03r5cQIcvvWSOwsAR54m
oQ2M0fHX1Br9/pFgecl9Asb4ab4jQ9IpOBb0M6shDu1so0jvFDPoD/EXqJmwTFEY
jq8JfcP0X7xoF2CFvd8=
-----END PUBLIC KEY-----";

pub(super) const ED25519_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAHHV2yt67ncjGk+6Frra3csiZwAigm8a5VVw6NmTpU3k=
-----END PUBLIC KEY-----";

pub(super) const SHORT_RSA_KEY: &str = "\
-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDE+xwT0gr4OHNaFomyt4Ajo3Ek
vgNB4JGKopV1mENCkhdOHO8lSYSjhnEEOPVLMlDp/SCbmFchAv1D+h88mFaxeecj
/2wD7+54RiIx83QtQ7+JdcCE86MwkCKWgd3/JvIhl26/zlhFm7OjLwXMWzxVQqmu
SIJA7UfBx6n2Lpn8qwIDAQAB
-----END PUBLIC KEY-----";

pub(super) const P256_CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBDjCBtaADAgECAgEBMAoGCCqGSM49BAMCMBExDzANBgNVBAMMBmlzc3VlcjAe
Fw0yMDAxMDEwMDAwMDBaFw00MDAxMDEwMDAwMDBaMBExDzANBgNVBAMMBmlzc3Vl
cjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABM7zvMp/JdiobP6LdS3RwAEiIUm6
F91lCX5q9pYPTAWjNh6fX9K72iVy+SAOCyYM9+faW8ucRrt0wanDfq1MhQ4wCgYI
KoZIzj0EAwIDSAAwRQIhANn69loS9FhOBptbg53ehYf1WDA516XAsTJkT80WNaqP
AiBMGHXruwuzEcLTdamn+JZUsC50U818iijxBzDAeJF71A==
-----END CERTIFICATE-----";

/// An algorithm, the key that fits it, and a token.
pub(super) const TOKENS: [(&str, &str, &str); 13] = [
    (
        "HS256",
        "secret",
        "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJrZXkifQ.YcnHGl7ihGq9Baa-0aCLeZaMQGPH4GnniO2w2sSpFM4",
    ),
    (
        "HS384",
        "secret",
        "eyJhbGciOiJIUzM4NCJ9.eyJpc3MiOiJrZXkifQ.zqYmNSIve1efzKKNzfOhtrwPru__cCJBA9Pjjv9yGuN5_vpNw9\
         5Der-lIN9rq4wX",
    ),
    (
        "HS512",
        "secret",
        "eyJhbGciOiJIUzUxMiJ9.eyJpc3MiOiJrZXkifQ.fIxJi6vCp-ViajNqyKdP2Ep9ZNBRIuMQGEnMY27K68aPy1zU-L\
         PF9Dy6Ac-Khuhq3JoodDMY_NmYGeS6Pw9s3g",
    ),
    (
        "RS256",
        RSA_KEY,
        "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrZXkifQ.Jo2sonqD-2mzKhrAtbKh_n8noUIJzoV0PJaa7hec_SW7fS-ojq\
         _n9EDvjeB_IX7SEODaCMGlA-5wcrwVzfmwBMxFkseWpEBEdQAPcHr0RxEenQ8UNHnIZWi8nCtKSx4_xQ4CBagowwk7\
         T4qKcuIZ-oHVSk04COU43pIZ8OlrPkKD_JliIdK_n0eocDQfwxq3zK2iNmJsFqJlyAcmZDirZKCqnvL3Y1bgOmLg53\
         vkcdiSFWbovWXhBTFh4iYeidTp-mhuTSCD7OigAokZvn0oLbdlzT-J8A3hNz1ACflFvVtlrNm7ysyfEIZhaLQMCO5h\
         2cf2d-d7Tu4Rpn4o94xahA",
    ),
    (
        "RS384",
        RSA_KEY,
        "eyJhbGciOiJSUzM4NCJ9.eyJpc3MiOiJrZXkifQ.dzl-3KO3Pbm9o6hjH4qzrF7VBOBsifUMUoFytLrnhTVZ5npZp7\
         q7z6mNODYtSv20B9G1Y8xYEbtJRf6gYNuJcVb6rjS98jzARb-6j-ohbPAp8QNzOcLII7AsS2oELcbQbf3WtxdAXsAn\
         GCHH8ShhWAUR1j1FiuuFF95LYtg5wi_C-6bQQ091MCp9e8KrIThZVQXWHYz1PW0rXMr6Gh3vf5wC15XPq6e3d7A2gh\
         c14RGdB3GfswhYyp2eaZL5qtX-Gze7_bDkWvKSbq7U16njiW3j3gCf1OH-EJxJbTY-glqpWKmwkd8ionq-KqG8wy9G\
         qW04j_uqj4QVpZg4jkwSfA",
    ),
    (
        "RS512",
        RSA_KEY,
        "eyJhbGciOiJSUzUxMiJ9.eyJpc3MiOiJrZXkifQ.dxmmCKn0odvosKh6Wkc9sebypZKV9jA1UFDUOXqqrXWb6r-ftu\
         nTY6j7njbq-WUbCaT1cSzzLz65pLPfezaQR08jj1xKntSgGOj-6Do6Ygux8rPXGiJZVYnrcOv_rZZIb3Pls8eles7e\
         ITyFLh_jL0xlqB67EKyyyB575phFyKCs58UPECHLjz3oiZXF_8d35JVq1UolLVU2L1PYSXlo9hfuGhnKwlxpCyRpNE\
         lorBUVTO4PY-U5HoBnbml9uY79hipyr7IiVmPa6bo4Dt-bqL4VL7tdnFYGmbfCPem8VyWDXBM32pk1FzME6NBou5u0\
         zV6hzPNu9Gn-JxnGhDgBRA",
    ),
    (
        "PS256",
        RSA_KEY,
        "eyJhbGciOiJQUzI1NiJ9.eyJpc3MiOiJrZXkifQ.IbcnJj5tkouP9sPz7LH5ujdbIwngu5Onp4vXi35HN5fuTH-RCr\
         2UwVdo1aILyLhu9gAFEOcUzKsW6Sii-SuDJsdYcou3TgJMGEZIaQ4HB_aqYNGB5sDVp2ooY6myPUh5qYzsyBsFVz8i\
         4p3ysnTv1B2GOTRMELQ7HcetZwhU3LzQ6hs4cI4CG24wF_K4HXWOvenamaDCjwekCiNH0xOxxu2Wo3R049RYLKalEi\
         Cp3ewKt7ZybkNU4I3939DHSGfP1jsphdgZADO2qHEy1K7TuO5ShH5xBVakZiFz28lSDiEqm5tDxg7glmyusiJMRbim\
         ydPizpaJzB8cKbdlIzSbJA",
    ),
    (
        "PS384",
        RSA_KEY,
        "eyJhbGciOiJQUzM4NCJ9.eyJpc3MiOiJrZXkifQ.dshEhjmOqHgABiG--lEWbypY0Hw4jsdSLNLC86YPY4x3aOW7ND\
         UMYQBioHQyhEUjl39rS7mKKKzursyXDuNj_7Zigsil6gpnX6739hYZ0SuLIoY2EBy3kjHRDZ4j0xeb0epoBfiiq0fc\
         eFr_SY0W7RPeSC5b_2Iry7hRPP74oaV5hlblI1u0DvaKsgUvQYIGx9CDSZj6MOPevMnIzNCJx-XZCZZqv7rrhNc-hS\
         9k8_vfxoLnPe5IJ8sdX5S4aj3969xdOWtZsKkAPz7uqnRWiUcc7zzcqQYtLUqqTk0pkiTEt27hGG8D6F7O1TrqOTtr\
         eBwSx82dKEe-91XAlbmGHg",
    ),
    (
        "PS512",
        RSA_KEY,
        "eyJhbGciOiJQUzUxMiJ9.eyJpc3MiOiJrZXkifQ.S91Pi9lp2gcAwD5mSZmXoKc-7RBL0r24kUWlwhGCD9-y6hZfQc\
         -5ocJ7Sr-K7VJnoAaIimRA53Ns4OYx4N9NiVxU8KzlCZLEOdGKUYZSMvhtZKsk7xImtIXkvGbqIfCG8hkR_owzqhIo\
         6-wyl01W-RgsXaoeKFiyktHLGZppwUcleQ-DrMhiK5QwoK29l59o71Wp5RI4i2V8kxvzw7c9o_o2lVcEDvWpa08ZCr\
         kyPGNlFJXwUyR9ipxWhXY09XGm_bZwOyqmACN4sXX7CRSC1bk-UL9HCq-HcGMVp3eoiBPoQXl79Uaz7pw7sXMV1gpp\
         Za_tmgM9-M4DCziy9ruxZw",
    ),
    (
        "ES256",
        P256_KEY,
        "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJrZXkifQ.IMMQ3w6nNmk3_9GJn2FN8VZWRzTKdk9hx0TFsJj2Fle-QucOAM\
         tV4mgKJ6z9l7rBXSSd20zsvNOBeknHRRPnog",
    ),
    (
        "ES384",
        P384_KEY,
        "eyJhbGciOiJFUzM4NCJ9.eyJpc3MiOiJrZXkifQ.UbsgvLYGsDanHcvN5N_G1OG6CAlxB5f_gR4CFx80uxQdmRooQY\
         ukTVktheTMpdiRbM0inQNKSWKHO2jX_Px1B-XEpxxlpY1dI0f2B_ERBUZK6c-X391ZCs2Kjjm59OrM",
    ),
    (
        "ES512",
        P521_KEY,
        "eyJhbGciOiJFUzUxMiJ9.eyJpc3MiOiJrZXkifQ.ABR3Zk87oQXSobxRBl8q_1vOx9pbpl2ZVrpJ5d5ZqIBRZV5sc0\
         vaC0H_138UlfvJQk3sCmUqPQQbwbJb5xvGQ_IAAP5o-6TIBaUGK0uWp5uRJSF1Jlr-YZufQ7bSjGnSFKgy6crtKxmG\
         6cyUpEsr1tDA8qBwaKJRfCo2Y2qQulH66Qfm",
    ),
    (
        "EdDSA",
        ED25519_KEY,
        "eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJrZXkifQ.hCQqu9gg-arg1M_P__m4yjM3AEXXd9kcypGfs4kjBSB4DUPkjk\
         FIWjiV_oQha2IBErLvoSY3DU-uEeDao4h2BQ",
    ),
];

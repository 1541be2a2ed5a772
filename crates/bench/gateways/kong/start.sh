#!/bin/sh
# Prepares Kong's directory and becomes its NGINX. Kong's code is taken from the program's place, and so is its OpenResty,
# unless KONG_OPENRESTY names a folder: the packages of Kong and of APISIX own /usr/local/openresty both.
set -eu
place=$(dirname "$(dirname "{{program}}")")
for openresty in "${KONG_OPENRESTY:-}" "$place/openresty" "$(dirname "$place")/openresty" /usr/local/openresty; do
    [ -z "$openresty" ] || [ ! -x "$openresty/nginx/sbin/nginx" ] || break
done
export PATH="$openresty/bin:$openresty/nginx/sbin:$PATH"
# Kong looks for its code in the current folder first.
[ ! -d "$place/kong" ] || cd "$place"
"{{program}}" prepare -p "{{dir}}/prefix" -c "{{dir}}/kong.conf"
nginx="$openresty/nginx/sbin/nginx"
[ -x "$nginx" ] || nginx=$(command -v openresty)
exec "$nginx" -p "{{dir}}/prefix" -c nginx.conf

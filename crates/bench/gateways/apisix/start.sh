#!/bin/sh
# Makes a home for APISIX that links to the code in the program's place, or to the installed one, and becomes its NGINX.
# The OpenResty is the one beside that code, unless APISIX_OPENRESTY names a folder: the packages of APISIX and of Kong
# own /usr/local/openresty both.
set -eu
installed=$(dirname "$(dirname "{{program}}")")
[ -d "$installed/apisix/cli" ] || installed=/usr/local/apisix
for openresty in "${APISIX_OPENRESTY:-}" "$installed/openresty" "$(dirname "$installed")/openresty" /usr/local/openresty; do
    [ -z "$openresty" ] || [ ! -x "$openresty/nginx/sbin/nginx" ] || break
done
export PATH="$openresty/bin:$openresty/nginx/sbin:$PATH"
home="{{dir}}/home"
mkdir -p "$home/conf" "$home/logs"
for part in apisix deps bin; do
    [ ! -e "$installed/$part" ] || ln -s "$installed/$part" "$home/$part"
done
cp -r "$installed"/conf/. "$home/conf/"
cp "{{dir}}/config.yaml" "{{dir}}/apisix.yaml" "$home/conf/"
cd "$home"
"{{program}}" init
nginx="$openresty/nginx/sbin/nginx"
[ -x "$nginx" ] || nginx=$(command -v openresty)
exec "$nginx" -p "$home" -c "$home/conf/nginx.conf" -g "daemon off;"

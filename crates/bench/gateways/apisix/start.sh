#!/bin/sh
# Makes a home for APISIX that links to the installed code, and becomes its NGINX.
set -eu
installed=/usr/local/apisix
home="{{dir}}/home"
mkdir -p "$home/conf" "$home/logs"
for part in apisix deps bin; do
    [ ! -e "$installed/$part" ] || ln -s "$installed/$part" "$home/$part"
done
cp -r "$installed"/conf/. "$home/conf/"
cp "{{dir}}/config.yaml" "{{dir}}/apisix.yaml" "$home/conf/"
cd "$home"
"{{program}}" init
nginx=$(command -v openresty || command -v /usr/local/openresty/bin/openresty)
exec "$nginx" -p "$home" -c "$home/conf/nginx.conf" -g "daemon off;"

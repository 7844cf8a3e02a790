;; The reply lies outside of its memory.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $drop (local.get $observed))
      (i32.const -32)))
  {{after}})

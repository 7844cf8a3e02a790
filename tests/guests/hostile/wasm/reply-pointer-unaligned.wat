;; The reply is at an odd address.
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
      (i32.const 513)))
  {{after}})

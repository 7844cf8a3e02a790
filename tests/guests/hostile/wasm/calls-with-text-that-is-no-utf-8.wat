;; Logs bytes that are no text.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 600) "\ff")
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call $write (i32.const 1) (i32.const 600) (i32.const 1))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})

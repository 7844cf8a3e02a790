;; Hands over more bytes than may cross at once.
;; kind: health
;; budget: {"replyBytes": 10000}
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store8 (i32.const 1024) (i32.const 47))
      (call $get-string (local.get $observed) (i32.const 1024) (i32.const 40000) (i32.const 700))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
